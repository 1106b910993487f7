"""What there is to be watched in a fleet: hosts with exporters, their services, and where Prometheus finds them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from modules.catalog import Catalog
from modules.fleet import Fleet
from modules.fleet.monitoring_check import exporter_address
from modules.fleet.plan import HostPlan, host_plan
from modules.monitoring.units import place

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class WatchedService:
    """A service as alerts need it. `start_s`: how long a start may take. `gated`: whether it has a gate."""

    host: str
    name: str
    start_s: int
    gated: bool


@dataclass(frozen=True)
class WatchedHost:
    """A host with exporters. `target`: `address:port`. `simulated`: a lab host."""

    name: str
    target: str
    simulated: bool
    services: tuple[WatchedService, ...]


@dataclass(frozen=True)
class Watched:
    """A fleet as one Prometheus sees it."""

    fleet: str
    hosts: tuple[WatchedHost, ...]

    @property
    def services(self) -> tuple[WatchedService, ...]:
        """Of all hosts."""
        return tuple(service for host in self.hosts for service in host.services)

    def targets(self) -> list[dict[str, Any]]:
        """As `file_sd_configs` reads them."""
        return [
            {
                "targets": [host.target],
                "labels": {"fleet": self.fleet, "host": host.name, "simulated": str(host.simulated).lower()},
            }
            for host in self.hosts
        ]


def watched(fleet: Fleet, catalog: Catalog, by: str | None) -> Watched:
    """The hosts of a fleet that have exporters. `by`: the host on which Prometheus runs; None: the site's own does."""
    hosts = []
    for host in fleet.hosts.values():
        exporters = host.settings.monitoring.exporters
        if exporters is None or (by is None and not host.settings.monitoring.existing_prometheus):
            continue
        here = by == host.name and exporters.listen in {LOOPBACK, "0.0.0.0"}  # noqa: S104, compared with
        address = LOOPBACK if here else exporter_address(host) or exporters.listen
        plan = host_plan(host, catalog)
        hosts.append(WatchedHost(host.name, place(address, exporters.port), plan.simulated, _services(plan)))
    return Watched(fleet.name, tuple(hosts))


def _services(plan: HostPlan) -> tuple[WatchedService, ...]:
    return tuple(
        WatchedService(
            plan.name,
            service.name,
            math.ceil(service.engine.readiness.start_minutes * 60),
            service.gate is not None,
        )
        for service in plan.services
    )
