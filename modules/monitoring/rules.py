"""Prometheus' rules of a fleet: what is expected of it, and what is told when it is otherwise.

What is expected is recorded by name, for a host that does not answer has no figure that could be wrong: no alert here
rests on a figure alone where its absence would look fine.
"""

from __future__ import annotations

from typing import Any

from modules.monitoring.alerts import Alert, alerts_of
from modules.monitoring.targets import Watched
from modules.spec.monitoring import Alerts

RUNBOOK = "docs/monitoring.md"


def rules(seen: Watched, bounds: Alerts) -> dict[str, Any]:
    """The document of a rule file."""
    return {
        "groups": [
            {"name": f"tinderbox-{seen.fleet}-expected", "rules": _expected(seen)},
            {"name": f"tinderbox-{seen.fleet}", "rules": [_rule(one, bounds) for one in alerts_of(seen, bounds)]},
        ]
    }


def _expected(seen: Watched) -> list[dict[str, Any]]:
    found = [_record("tinderbox_expected_host", fleet=seen.fleet, host=host.name) for host in seen.hosts]
    for service in seen.services:
        found.append(_record("tinderbox_expected_service", fleet=seen.fleet, host=service.host, service=service.name))
    return found


def _record(name: str, **labels: str) -> dict[str, Any]:
    return {"record": name, "expr": "vector(1)", "labels": labels}


def _rule(alert: Alert, bounds: Alerts) -> dict[str, Any]:
    wait = alert.for_s if bounds.for_s is None else min(bounds.for_s, alert.for_s)
    return {
        "alert": alert.name,
        "expr": alert.expression,
        "for": f"{wait}s",
        "labels": {"severity": alert.severity},
        "annotations": {
            "summary": alert.summary,
            "description": alert.action,
            "runbook": f"{RUNBOOK}#{alert.anchor}",
        },
    }
