"""What on a host keeps a service from starting, and is not for us to take away."""

from __future__ import annotations

import base64
import json

from pyinfra.api import QuoteString, StringCommand

from modules.facts.base import HostFact
from modules.release import layout

_PORT = str(layout.PROGRAMS / "port_holder.py")
_ENGINES = str(layout.PROGRAMS / "engine_processes.py")


def _asked(program: str, *words: str) -> StringCommand:
    # Silent where the program is not installed yet: a run without -y asks before the stages that install it.
    return StringCommand("! test -e", program, "||", layout.PYTHON, program, *(QuoteString(word) for word in words))


class PortHolder(HostFact["str | None"]):
    """What else listens where a service wants to, in words; None where nothing does."""

    def command(self, service: str, listen: str, port: int) -> StringCommand:  # noqa: D102
        return _asked(_PORT, service, listen, str(port))

    def parse(self, lines: list[str]) -> str | None:  # noqa: D102
        holder: str | None = json.loads(lines[-1])["holder"]
        return holder


class StrangeEngines(HostFact["list[str]"]):
    """Engines that run on the host and that no memory plan counts in, in words."""

    def command(self, patterns: list[str], services: list[str]) -> StringCommand:  # noqa: D102
        # A process that has the patterns in its command line would itself be taken for an engine.
        packed = (base64.b64encode(json.dumps(words).encode()).decode() for words in (patterns, services))
        return _asked(_ENGINES, *packed)

    def parse(self, lines: list[str]) -> list[str]:  # noqa: D102
        return list(json.loads(lines[-1])["strangers"])
