"""A checkpoint on a host: what its layers cache, its bytes by data type, and whether it is whole."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pyinfra.api import QuoteString, StringCommand
from typing_extensions import override

from modules.facts.base import HostFact
from modules.memory import Checkpoint, from_summary
from modules.release import layout

_PROGRAM = str(layout.PROGRAMS / "checkpoint.py")


@dataclass(frozen=True)
class CheckpointState:
    """`memory_total`: of the host, in bytes.

    `problems`: a line for each file or tensor that is not as its header or the index says.
    """

    checkpoint: Checkpoint
    memory_total: int
    problems: tuple[str, ...]


class CheckpointFiles(HostFact[CheckpointState]):
    """By the headers of the weight files; None where the directory or our program is not there yet.

    + directory: the snapshot
    + file: the one GGUF file in it that is served
    """

    @override
    def command(self, directory: str, file: str | None = None) -> StringCommand:
        place = QuoteString(directory)
        words = [place] if file is None else [place, "--file", QuoteString(file)]
        return StringCommand("! test -e", _PROGRAM, "|| ! test -d", place, "||", layout.PYTHON, _PROGRAM, *words)

    @override
    def parse(self, lines: list[str]) -> CheckpointState:
        summary = json.loads(lines[-1])
        return CheckpointState(from_summary(summary), int(summary["memory_total"]), tuple(summary["problems"]))
