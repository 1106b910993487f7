"""What a host has of what is to watch it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyinfra.api import QuoteString, StringCommand
from typing_extensions import override

from modules.facts.base import HostFact
from modules.facts.files import FileState, FileStates
from modules.release import layout

PROGRAM = str(layout.PROGRAMS / "monitoring_settings.py")


@dataclass(frozen=True)
class MonitoringState:
    """`differences`: what else than the files is not as wished, in words. `missing`: packages that are not installed.

    `foreign`: packages that were on the host before Tinderbox.
    """

    files: dict[str, FileState | None]
    differences: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()


class Monitoring(HostFact[MonitoringState]):
    """Files and state of what watches the host, in one round trip; None before Tinderbox's programs are on it.

    + paths: absolute paths of the files
    + wish: what `monitoring_settings.py check` is given
    """

    @override
    def command(self, paths: Sequence[str], wish: Mapping[str, object]) -> StringCommand:
        wished = QuoteString(json.dumps(wish, sort_keys=True))
        check = StringCommand("printf %s", wished, "|", layout.PYTHON, PROGRAM, "check;")
        return StringCommand("! test -e", PROGRAM, "|| {", check, FileStates().command(paths), "; }")

    @override
    def parse(self, lines: list[str]) -> MonitoringState:
        told = json.loads(lines[0])
        return MonitoringState(
            files=FileStates().parse(lines[1:]),
            differences=tuple(told["differences"]),
            missing=tuple(told["missing"]),
            foreign=tuple(told["foreign"]),
        )
