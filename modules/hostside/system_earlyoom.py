"""The daemon that ends the largest process before the host wedges, brought about and undone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.atomic import read_json, write_json
    from modules.hostside.settings_program import Change
    from modules.hostside.system_host import System
else:
    from atomic import read_json, write_json
    from settings_program import Change
    from system_host import System

EARLYOOM = "earlyoom.service"
# As what it was started last.
_RUNS = "earlyoom runs"


def earlyoom(system: System, wish: dict[str, Any]) -> Iterator[Change]:
    """The daemon that ends the largest process before the host wedges. Its package is installed before."""
    name, wanted = "earlyoom", bool(wish["earlyoom"])
    before = system.kept().get(name)
    active = system.shown(EARLYOOM, "ActiveState") == "active"
    enabled = system.ask("systemctl", "is-enabled", EARLYOOM)[1] == "enabled"

    def command() -> str:
        # Without the times of the last start, which stand in the same line.
        words = re.search(r"argv\[\]=(.*?) ;", system.shown(EARLYOOM, "ExecStart"))
        return words[1] if words else ""

    def start() -> None:
        system.keep(name, "added" if _added(system) else ("enabled" if enabled else "disabled"))
        system.must("systemctl", "enable", "--quiet", EARLYOOM)
        system.must("systemctl", "restart", EARLYOOM)
        # As systemd has it now: the settings before this one may have had it read another drop-in.
        system.note(_RUNS, command())

    def undo() -> None:
        if before == "added":
            system.must("apt-get", "-y", "-o", "DPkg::Lock::Timeout=300", "purge", name)
            packages = read_json(system.undo / "packages.json") or {}
            kept = {key: value for key, value in packages.items() if key != name}
            write_json(system.undo / "packages.json", kept)
        elif before == "enabled":
            system.must("systemctl", "restart", EARLYOOM)
        else:
            system.must("systemctl", "disable", "--quiet", "--now", EARLYOOM)
        system.forget(name, _RUNS)

    if wanted and not (active and enabled and before is not None and system.kept().get(_RUNS) == command()):
        yield "earlyoom does not run as wished", start
    elif not wanted and before is not None:
        yield "earlyoom still runs as it was wished before", undo


def _added(system: System) -> bool:
    entry = (read_json(system.undo / "packages.json") or {}).get("earlyoom")
    return isinstance(entry, dict) and "earlyoom" in entry.get("added", [])
