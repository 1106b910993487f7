"""Tell of the fleet: each host's state, releases, gates, history and memory, as a page and for programs."""

from __future__ import annotations

from pyinfra.api import deploy

from modules.fleet import HostPlan
from modules.operations.report import gather, report_written


@deploy("Report")
def report(plan: HostPlan) -> None:
    """Ask the host in one round trip, and write the report of the whole fleet; nothing is changed on the host."""
    gather(plan)
    report_written(name="Write the report", _run_once=True, _sudo=False)
