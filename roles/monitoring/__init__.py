"""Eyes: what tells of a host, and on a chosen one Prometheus and Grafana, which look at all of them."""

from __future__ import annotations

from typing import Any

from pyinfra.api import deploy

from modules.catalog import load_catalog
from modules.facts.survey import Question
from modules.fleet import HostPlan, load_fleet
from modules.monitoring.plan import WatchPlan, watch_plan
from modules.monitoring.targets import watched as seen_by
from modules.operations.monitoring import watch_there, watched


@deploy("Monitoring")
def monitoring(plan: HostPlan, asked: bool = False) -> None:
    """Have exporters, Prometheus and Grafana as the fleet file says.

    `asked`: hosts without such a wish, too, from which then goes what an earlier one has brought. In a run of
    everything nothing is asked of those.
    """
    if asked or plan.settings.monitoring.wanted:
        watched(name="What watches the host", plan=_watch_plan(plan))


def questions(plan: HostPlan) -> list[Question[Any]]:
    """What this stage will ask."""
    return [watch_there(_watch_plan(plan))] if plan.settings.monitoring.wanted else []


def _watch_plan(plan: HostPlan) -> WatchPlan:
    fleet, wish = load_fleet(), plan.settings.monitoring
    return watch_plan(
        plan,
        seen_by(fleet, load_catalog(), by=plan.name if wish.prometheus is not None else None),
        None if wish.grafana is None else fleet.secret(wish.grafana.admin_password),
    )
