"""What a host has of the operating system's settings that the fleet file may ask for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyinfra.api import QuoteString, StringCommand
from typing_extensions import override

from modules.facts.base import HostFact
from modules.facts.files import FileState, FileStates
from modules.release import layout

PROGRAM = str(layout.PROGRAMS / "system_settings.py")


@dataclass(frozen=True)
class SystemState:
    """`differences`: what else than the files is not as wished, in words."""

    files: dict[str, FileState | None]
    differences: tuple[str, ...]


class SystemSettings(HostFact[SystemState]):
    """Files and state of the settings, in one round trip; None before Tinderbox's programs are on the host.

    + paths: absolute paths of the files
    + wish: what `system_settings.py` is given
    """

    @override
    def command(self, paths: Sequence[str], wish: Mapping[str, object]) -> StringCommand:
        wished = QuoteString(json.dumps(wish, sort_keys=True))
        check = StringCommand("printf %s", wished, "|", layout.PYTHON, PROGRAM, "check;")
        return StringCommand("! test -e", PROGRAM, "|| {", check, FileStates().command(paths), "; }")

    @override
    def parse(self, lines: list[str]) -> SystemState:
        return SystemState(files=FileStates().parse(lines[1:]), differences=tuple(json.loads(lines[0])))
