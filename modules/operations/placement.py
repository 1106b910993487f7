"""Where the fleet's own services are, kept in the lock before the first of them is started."""

from __future__ import annotations

from collections.abc import Generator

from pyinfra import host
from pyinfra.api import FunctionCommand, Host, State, operation
from pyinfra.api.command import PyinfraCommand

from modules.fleet import load_fleet
from modules.fleet.lock import lock_path, read_lock, record
from modules.operations.differences import differs


@operation()
def placements_kept() -> Generator[PyinfraCommand, None, None]:
    """Have the fleet's lock name the hosts that were chosen, so that a later run moves nothing that serves."""
    fleet = load_fleet()
    if read_lock(fleet.path).placements == dict(fleet.placements):
        host.noop("the lock says where they are")
        return
    differs(lock_path(fleet.path).name, "does not say which hosts were chosen for the fleet's services")
    yield FunctionCommand(record_placements, (), {})


def record_placements(state: State, host: Host) -> bool:
    """Write what was chosen to the lock; pyinfra passes `state` and `host` by name."""
    fleet = load_fleet()
    record(fleet.path, placements=fleet.placements)
    host.log(f"{lock_path(fleet.path).name} says where services are now")
    return True
