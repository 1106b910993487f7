"""Check what a fleet's settings say of monitoring: ports that clash, and exporters that no Prometheus can reach."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import urlsplit

from modules.fleet.problem import Key, Problem
from modules.fleet.tree import Tree, find
from modules.spec.base import is_loopback
from modules.spec.fleet import ResolvedHost
from modules.spec.settings import HostSettings

Finding = tuple[Key, str, str]
_BY_NAME = (
    "Prometheus listens beyond loopback, and so may speak to addresses alone; here only a name is known",
    "write an IP address",
)
_ANY = {"0.0.0.0", "::"}  # noqa: S104, compared with, not listened on


def monitoring_rules(settings: HostSettings) -> Iterator[Finding]:
    """What one host's settings say together. Keys are below the settings."""
    ours = settings.monitoring
    parts = {name: part for name in ("exporters", "prometheus", "grafana") if (part := getattr(ours, name)) is not None}
    taken = {service.port: f"service {name}" for name, service in settings.services.items()}
    taken |= {settings.image.port: "the passing on of images"} if parts else {}
    taken |= {settings.weights.spread.port: "the passing on of weights"} if settings.weights.spread.enabled else {}
    if settings.gateway is not None:
        taken |= {settings.gateway.port: "the gateway", settings.gateway.metrics.port: "the gateway's metrics"}
    for name, part in parts.items():
        if part.port in taken:
            what = f"{name} and {taken[part.port]} both want port {part.port}"
            yield ("monitoring", name, "port"), what, f"change monitoring.{name}.port"
        taken[part.port] = f"monitoring.{name}"
    if ours.prometheus is not None and not is_loopback(ours.prometheus.listen):
        for at, url in enumerate(ours.prometheus.alertmanagers):
            if not _is_address(urlsplit(url).hostname or ""):
                yield ("monitoring", "prometheus", "alertmanagers", at), *_BY_NAME


def monitoring_problems(hosts: Sequence[ResolvedHost], tree: Tree) -> list[Problem]:
    """What the hosts of a fleet say together. `tree`: the whole file's, for their places."""
    return [
        Problem(find(tree, ("hosts", name, "settings", *key)).origin, what, todo)
        for name, key, what, todo in _fleet_rules(hosts)
    ]


def _fleet_rules(hosts: Sequence[ResolvedHost]) -> Iterator[tuple[str, Key, str, str]]:
    askers = [host for host in hosts if host.settings.monitoring.prometheus is not None]
    addresses = [one.listen for host in askers if (one := host.settings.monitoring.prometheus) is not None]
    open_to_others = not all(map(is_loopback, addresses))
    for host in hosts:
        exporters, existing = host.settings.monitoring.exporters, host.settings.monitoring.existing_prometheus
        if exporters is None:
            if existing:
                what = "the site's Prometheus finds nothing on this host"
                yield host.name, ("monitoring", "existing_prometheus"), what, "add monitoring.exporters, or take it out"
            continue
        others = [asker.name for asker in askers if asker.name != host.name]
        key = ("monitoring", "exporters", "listen")
        known = exporter_address(host)
        asked_by = ", ".join(others) if others else "the site's Prometheus" if existing else ""
        if asked_by and is_loopback(exporters.listen):
            what = f"its exporters listen on loopback, where {asked_by} can not reach them"
            yield host.name, key, what, "set listen to the host's own address, and scraped_from to who asks"
        elif others and open_to_others and known is not None and not _is_address(known):
            yield host.name, ("network", "peer_address"), *_BY_NAME
        elif asked_by and known is None:
            what = (
                f"its exporters listen on {exporters.listen}, and no address is known at which {asked_by} reaches them"
            )
            yield host.name, key, what, "set listen to the host's own address, or network.peer_address"


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def exporter_address(host: ResolvedHost) -> str | None:
    """Where another host reaches the exporters; None where nothing is known but loopback."""
    exporters = host.settings.monitoring.exporters
    if exporters is None:
        return None
    known = (exporters.listen, host.settings.network.peer_address, host.address)
    return next(_reachable(known), None)


def _reachable(addresses: Iterable[str | None]) -> Iterator[str]:
    return (one for one in addresses if one is not None and one not in _ANY and not is_loopback(one))
