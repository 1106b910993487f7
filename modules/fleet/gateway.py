"""Which gateway of a fleet sends requests where, and what each host that serves has to know of that. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from modules.catalog import Catalog
from modules.spec.base import is_loopback
from modules.spec.fleet import ResolvedHost
from modules.spec.gateway import Gateway
from modules.spec.settings import Service

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Upstream:
    """A server of one service. `agent`: the address at which its host tells whether it takes requests."""

    host: str
    address: str
    port: int
    agent: str


@dataclass(frozen=True)
class Route:
    """A service of the gateway. `model`: its name in the API. `secret`: the name of its API key's, where it has one.

    `aliases`: further names of its model.
    """

    service: str
    model: str
    secret: str | None
    upstreams: tuple[Upstream, ...]
    aliases: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All by which clients may ask for it."""
        return (self.model, *self.aliases)


@dataclass(frozen=True)
class GatewayPlan:
    """A host's gateway, with where it sends requests."""

    gateway: Gateway
    routes: tuple[Route, ...]


@dataclass(frozen=True)
class AgentPlan:
    """What a host tells gateways. `services`: those that they send requests to. `gateways`: their addresses.

    `drain_s`: the longest wait of them all.
    """

    listen: str
    port: int
    services: tuple[str, ...]
    gateways: tuple[str, ...]
    drain_s: int


Hosts = Mapping[str, ResolvedHost]


def wanted(gateway: Gateway, service: str) -> bool:
    """Whether the gateway has that service."""
    return not gateway.services or service in gateway.services


def model_name(service: Service, catalog: Catalog) -> str | None:
    """Its model's name in the API; None where the catalog has no such model, which is told elsewhere."""
    model = catalog.models.get(service.model) if isinstance(service.model, str) else service.model
    return None if model is None else model.served_as


def peer_address(host: ResolvedHost) -> str:
    """Where others of the fleet reach a host."""
    return host.settings.network.peer_address or host.address


def reached_at(service: Service, host: ResolvedHost, gateway_host: str) -> str | None:
    """The address at which a gateway reaches a service; None where it can not, or the host only takes part in it."""
    if service.cluster is not None and service.cluster.head != host.name:
        return None
    everywhere = _is_unspecified(service.listen)
    if host.name == gateway_host:
        return LOOPBACK if everywhere else service.listen
    if is_loopback(service.listen) or (everywhere and is_loopback(peer_address(host))):
        return None
    return peer_address(host) if everywhere else service.listen


def _is_unspecified(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_unspecified


def _upstreams(name: str, gateway_host: str, hosts: Hosts) -> Iterator[tuple[Service, Upstream]]:
    for host in hosts.values():
        service = host.settings.services.get(name)
        address = None if service is None else reached_at(service, host, gateway_host)
        if service is not None and address is not None:
            agent = LOOPBACK if host.name == gateway_host else peer_address(host)
            yield service, Upstream(host.name, address, service.port, agent)


def gateway_plan(gateway_host: str, hosts: Hosts, catalog: Catalog) -> GatewayPlan | None:
    """What the gateway of a host is to be; None where it has none. For a fleet that was found right."""
    gateway = hosts[gateway_host].settings.gateway
    if gateway is None:
        return None
    names = dict.fromkeys(name for host in hosts.values() for name in host.settings.services if wanted(gateway, name))
    routes = []
    for name in sorted(names):
        found = list(_upstreams(name, gateway_host, hosts))
        if found:
            first = found[0][0]
            model = str(model_name(first, catalog))
            secret = next((one.api_key for one, _ in found if one.api_key is not None), None)
            routes.append(Route(name, model, secret, tuple(upstream for _, upstream in found), first.aliases))
    return GatewayPlan(gateway, tuple(routes))


def agent_plan(host_name: str, hosts: Hosts) -> AgentPlan | None:
    """What a host has to tell gateways; None where none sends it requests."""
    host = hosts[host_name]
    served: dict[str, None] = {}
    asking: dict[str, Gateway] = {}
    for other in hosts.values():
        gateway = other.settings.gateway
        if gateway is None:
            continue
        for name, service in host.settings.services.items():
            if wanted(gateway, name) and reached_at(service, host, other.name) is not None:
                served[name] = None
                asking[other.name] = gateway
    if not served:
        return None
    addresses = tuple(LOOPBACK if name == host_name else peer_address(hosts[name]) for name in asking)
    return AgentPlan(
        listen=LOOPBACK if set(asking) == {host_name} else "0.0.0.0",  # noqa: S104 (who asks is looked at)
        port=next(iter(asking.values())).agent_port,
        services=tuple(sorted(served)),
        gateways=addresses,
        drain_s=max(gateway.drain_s for gateway in asking.values()),
    )
