"""The servers of models that run on a host, whoever started them, in one round trip; nothing of ours need be there."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from pyinfra.api import QuoteString, StringCommand
from typing_extensions import override

from modules.adopt.observed import Seen, seen_of
from modules.facts.base import HostFact

_SOURCES = ("masking", "gather_servers")
_HOSTSIDE = Path(__file__).parents[1] / "hostside"
_LOADER = (
    "import json, sys, types\n"
    "for name, text in json.loads(sys.argv[1]).items():\n"
    "    module = sys.modules[name] = types.ModuleType(name)\n"
    "    exec(text, module.__dict__)\n"
    "print(json.dumps(module.gather()))\n"
)


@cache
def _sources() -> str:
    return json.dumps({name: (_HOSTSIDE / f"{name}.py").read_text() for name in _SOURCES})


class RunningServers(HostFact[Seen]):
    """All of them, but for those of Tinderbox itself."""

    @override
    def command(self) -> StringCommand:
        return StringCommand("python3 -c", QuoteString(_LOADER), QuoteString(_sources()))

    @override
    def parse(self, lines: list[str]) -> Seen:
        return seen_of(next(line for line in reversed(lines) if line.startswith("{")))
