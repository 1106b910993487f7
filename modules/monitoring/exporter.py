"""What a host's exporter is told (modules/hostside/export_metrics.py)."""

from __future__ import annotations

import json
from typing import Any

from modules.fleet import HostPlan, ServicePlan
from modules.gating.direction import unit_of
from modules.monitoring.engine_names import prefix_of
from modules.release import layout
from modules.release.build import key_file, key_variable
from modules.spec.gate import Gate
from modules.spec.monitoring import Exporters

SETTINGS_FILE = str(layout.SETTINGS / "monitoring.json")
# Root's own, so that the exporter needs no capability to write there; node exporter may read it.
METRICS = layout.STATE / "metrics"


def textfile_directory(exporters: Exporters) -> str:
    """Where the exporter writes: the site's directory where node exporter is the site's."""
    return str(METRICS) if exporters.node_exporter else exporters.textfile_directory


def exporter_settings(plan: HostPlan) -> str:
    """Its settings file. No secret is in it: keys stay in the files that the engines read."""
    exporters = plan.settings.monitoring.exporters
    assert exporters is not None
    document = {
        "file": f"{textfile_directory(exporters)}/tinderbox.prom",
        "every_s": exporters.every_s,
        "simulated": plan.simulated,
        "services": {service.name: _service(service) for service in plan.services},
    }
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def _service(plan: ServicePlan) -> dict[str, Any]:
    wish: dict[str, Any] = {
        # A worker of a cluster has no API, and so nothing to ask for figures.
        "url": None if plan.is_worker else layout.endpoint(plan.service.listen, plan.service.port),
        "engine": plan.service.engine,
        "prefix": prefix_of(plan.engine),
        "gate": plan.gate is not None,
    }
    if plan.gate is not None:
        wish["bounds"] = _bounds(plan.gate)
        wish["units"] = {metric: unit_of(metric) for metric in plan.gate.metrics()}
    if key_variable(plan) is not None:
        wish |= {"key_file": key_file(plan), "key_variable": key_variable(plan)}
    return wish


def _bounds(gate: Gate) -> dict[str, dict[str, float]]:
    ends = ("min", "max", "warn_min", "warn_max")
    found = {
        metric: bounds.model_dump(include=set(ends), exclude_none=True) for metric, bounds in gate.thresholds.items()
    }
    return {metric: bounds for metric, bounds in found.items() if bounds}
