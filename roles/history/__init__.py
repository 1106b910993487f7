"""Tell of each service's releases; change nothing."""

from __future__ import annotations

from pyinfra import host, logger
from pyinfra.api import deploy

from modules.facts.releases import ReleaseHistory, ServiceHistory
from modules.fleet import HostPlan, ServicePlan
from modules.operations.asked import asked_service
from modules.release.history import rows
from modules.reporting.silent import NO_PROGRAM
from modules.reporting.stored import figures_in


@deploy("History")
def history(plan: HostPlan) -> None:
    """Print them while the run is prepared, so that a dry run tells them too."""
    services = [service for service in plan.services if asked_service() in {None, service.name}]
    seen = host.get_fact(ReleaseHistory, services=[service.name for service in services])
    if seen is None:
        logger.error(f"{plan.name}: {NO_PROGRAM}")
        return
    for service in services:
        for line in told(plan.name, service, seen[service.name]):
            logger.info(line)


def told(name: str, service: ServicePlan, seen: ServiceHistory) -> list[str]:
    """The lines of one service."""
    found = rows(seen, gates_of(service, seen))
    title = f"{name}: {service.name}: {len(found)} release{'' if len(found) == 1 else 's'}, the newest first"
    return [title, *(f"    {line}" for row in found for line in row.lines())]


def gates_of(service: ServicePlan, seen: ServiceHistory) -> dict[str, tuple[str, str]]:
    """Release → verdict of its newest measurement, and the figure by which it came to that.

    The gate may be another one by now, so what was noted with the judgement decides, where it was.
    """
    found = {}
    for stored in seen.measurements:
        judgement = stored.get("judgement") or {}
        metrics = figures_in(stored).metrics
        lines = judgement.get("lines") or []
        decided = [line["metric"] for line in lines if line["verdict"] == judgement.get("verdict")]
        wanted = list(service.gate.thresholds) if service.gate is not None else []
        names = [metric for metric in (*decided, *wanted) if metric in metrics] or list(metrics)
        figure = f"{names[0]}: {metrics[names[0]].mean:.2f}" if names else ""
        found[str(stored.get("release"))] = (str(judgement.get("verdict") or "not judged"), figure)
    return found
