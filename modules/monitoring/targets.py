"""What there is to be watched in a fleet: hosts with exporters, their services, and where Prometheus finds them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from modules.catalog import Catalog
from modules.fleet import Fleet
from modules.fleet.monitoring_check import exporter_address
from modules.fleet.plan import HostPlan, host_plan
from modules.monitoring.units import ANY, place
from modules.spec.base import is_loopback

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
    """A fleet as one Prometheus sees it. `gateways`: host → where its HAProxy tells its figures."""

    fleet: str
    hosts: tuple[WatchedHost, ...]
    gateways: Mapping[str, str] = field(default_factory=dict)

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

    def gateway_targets(self) -> list[dict[str, Any]]:
        """The same of gateways. They are named by a label of their own: a gateway that answers is no host that does."""
        return [
            {"targets": [target], "labels": {"fleet": self.fleet, "gateway": host}}
            for host, target in self.gateways.items()
        ]


def watched(fleet: Fleet, catalog: Catalog, by: str | None) -> Watched:
    """The hosts of a fleet that have exporters. `by`: the host on which Prometheus runs; None: the site's own does."""
    hosts = []
    for host in fleet.hosts.values():
        exporters = host.settings.monitoring.exporters
        if exporters is None or (by is None and not host.settings.monitoring.existing_prometheus):
            continue
        here = by == host.name and exporters.listen in {LOOPBACK, *ANY}
        address = LOOPBACK if here else exporter_address(host) or exporters.listen
        plan = host_plan(host, catalog)
        hosts.append(WatchedHost(host.name, place(address, exporters.port), plan.simulated, _services(plan)))
    return Watched(fleet.name, tuple(hosts), _gateways(fleet, by))


def _gateways(fleet: Fleet, by: str | None) -> dict[str, str]:
    """Those that Prometheus can reach; one that tells its figures on another host's loopback can not be asked."""
    found = {}
    for host in fleet.hosts.values():
        if host.settings.gateway is None:
            continue
        metrics = host.settings.gateway.metrics
        known = (LOOPBACK,) if by == host.name else (metrics.listen, host.settings.network.peer_address, host.address)
        address = next((one for one in known if one and one not in ANY), None)
        if by == host.name and not is_loopback(metrics.listen) and metrics.listen not in ANY:
            address = metrics.listen
        if address is not None and (by == host.name or not is_loopback(address)):
            found[host.name] = place(address, metrics.port)
    return found


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
