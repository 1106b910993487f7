"""How fast a host reads and loads a model, as it was measured there."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pyinfra.api import StringCommand
from typing_extensions import override

from modules.facts.base import HostFact
from modules.facts.program import AskProgram
from modules.loading import DeviceWays, Rates
from modules.release import layout

RATES_PROGRAM = str(layout.PROGRAMS / "probe_load.py")
WAYS_PROGRAM = str(layout.PROGRAMS / "probe_ways.py")


@dataclass(frozen=True)
class Kept:
    """`rates`, `ways`: None where nothing that holds still was measured."""

    rates: Rates | None = None
    ways: DeviceWays | None = None


def _recall(program: str, words: list[str]) -> StringCommand:
    return AskProgram(layout.PYTHON, program, (*words, "--recall"), absent="null")


class LoadRates(HostFact[Kept]):
    """The kept rates of reading a model's files."""

    @override
    def command(self, directory: str, file: str | None = None) -> StringCommand:
        """Ask probe_load.py, where it is.

        + directory: the snapshot
        + file: the one GGUF file in it that is served
        """
        return _recall(RATES_PROGRAM, rates_words(directory, file))

    @override
    def parse(self, lines: list[str]) -> Kept:
        found = json.loads(lines[-1])
        return Kept(rates=None if found is None else Rates.model_validate(found))


class LoadWays(HostFact[Kept]):
    """The kept figures of loading a model to the device by each way."""

    @override
    def command(self, words: list[str]) -> StringCommand:
        """Ask probe_ways.py, where it is.

        + words: see `probe_ways.py`
        """
        return _recall(WAYS_PROGRAM, words)

    @override
    def parse(self, lines: list[str]) -> Kept:
        found = json.loads(lines[-1])
        return Kept(ways=None if found is None else DeviceWays.model_validate(found))


def rates_words(directory: str, file: str | None) -> list[str]:
    """The arguments of `probe_load.py`."""
    return ["--directory", directory, *(["--file", file] if file is not None else [])]
