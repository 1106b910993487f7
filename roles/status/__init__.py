"""Tell how the hosts and their services are at this moment; change nothing."""

from __future__ import annotations

from pyinfra.api import deploy

from modules.fleet import HostPlan
from modules.operations.status import gather, status_shown


@deploy("Status")
def status(plan: HostPlan) -> None:
    """Ask the host in one round trip, and show all hosts on one screen."""
    gather(plan)
    status_shown(name="Show the status", _run_once=True, _sudo=False)
