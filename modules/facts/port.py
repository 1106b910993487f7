"""What has a service's port."""

from __future__ import annotations

import json

from pyinfra.api import QuoteString, StringCommand

from modules.facts.base import HostFact
from modules.release import layout

PROGRAM = str(layout.PROGRAMS / "port_holder.py")


class PortHolder(HostFact["str | None"]):
    """What else listens where a service wants to, in words; None where nothing does."""

    def command(self, service: str, listen: str, port: int) -> StringCommand:  # noqa: D102
        words = [QuoteString(word) for word in (service, listen, str(port))]
        # Silent where the program is not installed yet: a run without -y asks before the stages that install it.
        return StringCommand("! test -e", PROGRAM, "||", layout.PYTHON, PROGRAM, *words)

    def parse(self, lines: list[str]) -> str | None:  # noqa: D102
        holder: str | None = json.loads(lines[-1])["holder"]
        return holder
