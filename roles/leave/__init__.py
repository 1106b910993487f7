"""Leave a host: take back what Tinderbox has put there, in layers (docs/remove.md)."""

from __future__ import annotations

from pathlib import Path

from pyinfra import host, logger
from pyinfra.api import deploy

from modules.converge.layers import EVERYTHING, unknown_layers
from modules.fleet import HostPlan, load_fleet
from modules.hostside.removal import ALL, LAYERS
from modules.operations.asked import ASKED_LAYERS, asked_layers
from modules.operations.connection import keep_alive
from modules.operations.host_hold import host_held
from modules.operations.removal import layers_removed
from modules.operations.require import require
from roles.preflight.sudo import stop_where_sudo_asks

_told: set[str] = set()


def layers_of(asked: frozenset[str]) -> tuple[str, ...]:
    """The layers that are meant, in the order in which they go."""
    return tuple(layer for layer in LAYERS if layer in asked or (EVERYTHING in asked and layer in ALL))


@deploy("Leave")
def leave(plan: HostPlan) -> None:
    """Have nothing of the asked layers on the host but what others use."""
    keep_alive(host)
    stop_where_sudo_asks(host)
    asked, unknown = asked_layers(), unknown_layers()
    require(
        name=f"{ASKED_LAYERS} is understood",
        ok=not unknown,
        message=f"{host.name}: {ASKED_LAYERS}: {', '.join(unknown)}: write some of {', '.join(LAYERS)}, or all",
    )
    _tell_of_the_controller()
    # Our programs are not brought there for this: they would be the first thing to take away.
    host_held(name="No other run changes this host")
    layers_removed(
        name="What Tinderbox has put there", layers=layers_of(asked), member=plan.name, simulated=plan.simulated
    )


def _tell_of_the_controller() -> None:
    """What a fleet has on this machine is not on any host, and stays."""
    fleet = load_fleet()
    timer = Path(f"/etc/systemd/system/tinderbox-nightly-{fleet.name}.timer")
    if timer.exists() and fleet.name not in _told:
        _told.add(fleet.name)
        logger.warning("this machine still checks the fleet every night; to end that: make nightly-off FLEET=…")
