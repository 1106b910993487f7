"""Settings of the operating system that the fleet file may ask for, brought about and undone.

    system_settings.py check|apply < WISH

WISH, as JSON: `earlyoom` (boolean), `swappiness` (number or null), `clock_cap_mhz` (number or null), `desktop` (false:
off; null: as the host has it), `end_desktop` (boolean), `gateway`, `agent` (false: those of the fleet's endpoint that
are still here go away; they come by other programs). Files of these settings are placed, or taken away, before.
What the host had is kept when a setting is first made, and put back when it is unset. `check` prints, as a JSON list,
what is not as wished; `apply` has it so. Exit status of `apply`: 0 done, 1 not (reason on standard error).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside import agent_host, gateway_host, gateway_process, settings_program
    from modules.hostside.settings_program import Change
    from modules.hostside.system_earlyoom import EARLYOOM, earlyoom
    from modules.hostside.system_host import SettingError, System
else:
    import agent_host
    import gateway_host
    import gateway_process
    import settings_program
    from settings_program import Change
    from system_earlyoom import EARLYOOM, earlyoom
    from system_host import SettingError, System

CLOCKS, DISPLAY = "tinderbox-clocks.service", "display-manager.service"
PROTECTED = ("ssh.service", "system.slice", "user.slice")
TEXT_ONLY = "multi-user.target"
_GRAPHICAL_SESSIONS = {"x11", "wayland", "mir"}


def units_read(system: System, _: dict[str, Any]) -> Iterator[Change]:
    """Have systemd know of the files that were placed or taken away."""
    changed = [unit for unit in (*PROTECTED, EARLYOOM, CLOCKS) if system.shown(unit, "NeedDaemonReload") == "yes"]
    if changed:
        yield f"systemd has not read what changed of {', '.join(changed)}", lambda: _reload(system)


def _reload(system: System) -> None:
    system.must("systemctl", "daemon-reload")


def swappiness(system: System, wish: dict[str, Any]) -> Iterator[Change]:
    """How readily the kernel swaps. The file in sysctl.d has it so at the next boot."""
    path, name = system.proc / "sys/vm/swappiness", "swappiness"
    now, wanted = int(path.read_text()), wish[name]
    value = system.kept().get(name) if wanted is None else wanted

    def settle() -> None:
        if wanted is not None:
            system.keep(name, now)
        try:
            path.write_text(f"{value}\n")
        except OSError as error:
            raise SettingError(f"vm.swappiness could not be set: {path}: {error.strerror}") from None
        if wanted is None:
            system.forget(name)

    if value is not None and (now != value or (wanted is None) == (name in system.kept())):
        yield f"vm.swappiness is {now}, wanted {value}", settle


def clocks(system: System, wish: dict[str, Any]) -> Iterator[Change]:
    """The cap of the GPU's clocks: nvidia-smi forgets it at a boot, so a unit of ours sets it."""
    name, cap = "clocks", wish["clock_cap_mhz"]
    applied = system.kept().get(name)
    active = system.shown(CLOCKS, "ActiveState") == "active"

    def cap_it() -> None:
        system.must("systemctl", "enable", "--quiet", CLOCKS)
        system.must("systemctl", "restart", CLOCKS)
        system.note(name, cap)

    def free() -> None:
        # The unit's file has gone, so systemctl can not disable it any more.
        (system.units / f"{TEXT_ONLY}.wants" / CLOCKS).unlink(missing_ok=True)
        system.ask("systemctl", "stop", CLOCKS)
        system.must("nvidia-smi", "-rgc")
        system.forget(name)

    if cap is not None and (applied != cap or not active):
        yield f"the GPU's clocks are not capped at {cap} MHz", cap_it
    elif cap is None and applied is not None:
        yield f"the GPU's clocks are capped at {applied} MHz", free


def desktop(system: System, wish: dict[str, Any]) -> Iterator[Change]:
    """Whether a desktop is started. Only its own service is stopped: to isolate a target would end our jobs, too."""
    name, off = "default target", wish["desktop"] is False
    target = system.ask("systemctl", "get-default")[1]
    before = system.kept().get(name)
    running = system.shown(DISPLAY, "ActiveState") == "active"

    def set_default() -> None:
        if off:
            system.keep(name, target)
        system.must("systemctl", "set-default", "--quiet", TEXT_ONLY if off else str(before))
        if not off:
            system.forget(name)
            if before == "graphical.target" and system.shown(DISPLAY, "LoadState") == "loaded":
                system.must("systemctl", "start", "--no-block", DISPLAY)

    if (off and (target != TEXT_ONLY or before is None)) or (not off and before is not None):
        yield f"a boot ends in {target}, wanted {TEXT_ONLY if off else before}", set_default
    if off and running and (wish["end_desktop"] or not _at_the_desktop(system)):
        yield "the desktop runs", lambda: system.must("systemctl", "stop", DISPLAY)


def _at_the_desktop(system: System) -> bool:
    """Whether somebody is logged in there; a greeter is nobody."""
    for line in system.ask("loginctl", "list-sessions", "--no-legend")[1].splitlines():
        session = line.split()[0] if line.split() else ""
        shown = system.ask("loginctl", "show-session", session, "--property", "Type", "--property", "Class")[1]
        found = dict(row.partition("=")[::2] for row in shown.splitlines())
        if found.get("Type") in _GRAPHICAL_SESSIONS and found.get("Class") == "user":
            return True
    return False


def endpoint(_: System, wish: dict[str, Any]) -> Iterator[Change]:
    """What is left of a fleet's endpoint that this host has no part in any more."""
    gateway = gateway_host.Gateway(gateway_process.Process())

    def remove() -> None:
        try:
            gateway.remove()
        except gateway_process.GatewayError as error:
            raise SettingError(f"the gateway could not be taken away: {error}") from None

    if not wish.get("gateway", True) and gateway.is_there():
        yield "the fleet's gateway is still here", remove
    if not wish.get("agent", True) and agent_host.is_there():
        yield "what tells gateways of this host is still here", agent_host.remove


# Units first: the others start what systemd must have read.
SETTINGS = (units_read, swappiness, clocks, desktop, earlyoom, endpoint)


def differences(system: System, wish: dict[str, Any]) -> list[str]:
    """What is not as wished."""
    return settings_program.differences(SETTINGS, system, wish)


def apply(system: System, wish: dict[str, Any]) -> list[str]:
    """Have all of it as wished. Returns what went wrong."""
    return settings_program.applied(SETTINGS, system, wish)


def main(arguments: list[str]) -> int:
    """Entry point."""
    return settings_program.main(arguments, __doc__, differences, apply)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
