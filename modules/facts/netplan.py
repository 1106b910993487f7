"""What netplan's files of a host say that was not brought about yet."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from pyinfra.api import QuoteString, StringCommand
from typing_extensions import override

from modules.facts.base import HostFact

_SOURCE = Path(__file__).parents[1] / "hostside" / "netplan_unapplied.py"


@cache
def _program() -> str:
    return _SOURCE.read_text() + "\n\nimport json\nprint(json.dumps(unapplied()))\n"


class NetplanUnapplied(HostFact["dict[str, str]"]):
    """File that netplan would make or change → its interface."""

    @override
    def command(self) -> StringCommand:
        return StringCommand("python3 -c", QuoteString(_program()))

    @override
    def parse(self, lines: list[str]) -> dict[str, str]:
        return dict(json.loads(lines[-1]))
