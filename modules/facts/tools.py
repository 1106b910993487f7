"""The Python environment of Tinderbox's own programs on a host."""

from __future__ import annotations

from pyinfra.api import StringCommand

from modules.facts.base import HostFact

TOOLS = "/var/lib/tinderbox/tools"
TOOLS_PYTHON = f"{TOOLS}/current/bin/python"


class ToolsInUse(HostFact[str]):
    """Which lock the environment in use was built from (see `install_tools.identity`); "none" where there is none."""

    def command(self) -> StringCommand:
        """What the link points to, when all of it is there."""
        current = f"{TOOLS}/current"
        return StringCommand(
            *("if test -e", f"{current}/.whole", "&& test -x", TOOLS_PYTHON, "; then"),
            *("basename", f'"$(readlink {current})"', "; else echo none; fi"),
        )

    def parse(self, lines: list[str]) -> str:
        """The environment's name."""
        return lines[0].strip()
