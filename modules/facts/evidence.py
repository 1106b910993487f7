"""What a host can tell about a failure, gathered in one round trip."""

from __future__ import annotations

import json
from typing import Any

from pyinfra.api import QuoteString, StringCommand
from typing_extensions import override

from modules.facts.base import HostFact
from modules.release import layout

_PROGRAM = str(layout.PROGRAMS / "gather_evidence.py")


class Evidence(HostFact["dict[str, Any]"]):
    """The document of `gather_evidence.py`, secrets masked; None before Tinderbox's programs are on the host.

    + service: whose logs; None: of the host alone
    """

    @override
    def command(self, service: str | None = None) -> StringCommand:
        what = "--host" if service is None else QuoteString(service)
        return StringCommand("! test -e", _PROGRAM, "||", layout.PYTHON, _PROGRAM, what)

    @override
    def parse(self, lines: list[str]) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(lines[-1])
        return document
