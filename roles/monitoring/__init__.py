"""Eyes: what tells of a host, and on a chosen one Prometheus and Grafana, which look at all of them."""

from __future__ import annotations

from pyinfra.api import deploy

from modules.catalog import load_catalog
from modules.fleet import HostPlan, load_fleet
from modules.monitoring.plan import watch_plan
from modules.monitoring.targets import watched as seen_by
from modules.operations.monitoring import watched


@deploy("Monitoring")
def monitoring(plan: HostPlan, asked: bool = False) -> None:
    """Have exporters, Prometheus and Grafana as the fleet file says.

    `asked`: hosts without such a wish, too, from which then goes what an earlier one has brought. In a run of
    everything nothing is asked of those.
    """
    wish = plan.settings.monitoring
    if not (asked or wish.wanted):
        return
    fleet = load_fleet()
    grafana = wish.grafana
    watched(
        name="What watches the host",
        plan=watch_plan(
            plan,
            seen_by(fleet, load_catalog(), by=plan.name if wish.prometheus is not None else None),
            None if grafana is None else fleet.secret(grafana.admin_password),
        ),
    )
