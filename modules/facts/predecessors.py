"""The servers whose places services of Tinderbox have taken on a host, or are to take."""

from __future__ import annotations

import json

from pyinfra.api import StringCommand
from typing_extensions import override

from modules.facts.base import HostFact
from modules.release import layout

PROGRAM = str(layout.PROGRAMS / "predecessor.py")


class Predecessors(HostFact["dict[str, dict[str, str]]"]):
    """Service → its predecessor's `state` (`chosen`, `stopped`, `back`) and what it is called (`named`).

    None before our programs are there.
    """

    @override
    def command(self) -> StringCommand:
        return StringCommand("! test -e", PROGRAM, "||", layout.PYTHON, PROGRAM, "list")

    @override
    def parse(self, lines: list[str]) -> dict[str, dict[str, str]]:
        return dict(json.loads(lines[-1]))
