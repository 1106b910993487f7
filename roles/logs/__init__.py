"""Tell what the services of all hosts have logged; change nothing."""

from __future__ import annotations

from pyinfra.api import deploy

from modules.fleet import HostPlan
from modules.operations.logs import gather, logs_shown


@deploy("Logs")
def logs(plan: HostPlan) -> None:
    """Ask the host for what its services have logged, and show it with what the others' have, in the order of time."""
    gather(plan)
    logs_shown(name="Show the logs", _run_once=True, _sudo=False)
