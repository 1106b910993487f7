"""Check what a fleet's gateways say together with its services, before any host is contacted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from modules.catalog import Catalog
from modules.fleet.gateway import Hosts, model_name, peer_address, reached_at, wanted
from modules.fleet.problem import Key, Problem
from modules.fleet.suggest import advice
from modules.fleet.tree import Tree, find
from modules.spec.base import is_loopback
from modules.spec.fleet import ResolvedHost
from modules.spec.gateway import Gateway

# What HAProxy takes for a name and nothing else: its configuration has it within quotes.
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]*")
Finding = tuple[str, Key, str, str]
"""Host, key below its settings, what is wrong, what to do."""


def gateway_problems(hosts: Iterable[ResolvedHost], trees: Mapping[str, Tree], catalog: Catalog) -> list[Problem]:
    """Tell what is wrong with the gateways of a fleet. `trees`: host → its settings, for their places."""
    by_name = {host.name: host for host in hosts}
    found = [finding for host in by_name.values() for finding in _of_host(host, by_name, catalog)]
    return [Problem(find(trees[host], key).origin, what, todo) for host, key, what, todo in found]


def _of_host(host: ResolvedHost, hosts: Hosts, catalog: Catalog) -> Iterator[Finding]:
    gateway = host.settings.gateway
    if gateway is None:
        return
    served = {name for one in hosts.values() for name in one.settings.services}
    for at, name in enumerate(gateway.services):
        if name not in served:
            what = f"no host of this fleet has a service {name!r}"
            yield host.name, ("gateway", "services", at), what, advice(name, served, "services")
    if not any(wanted(gateway, name) for name in served):
        yield host.name, ("gateway",), "there is no service that it could send requests to", "add one, or take it out"
    yield from _ports(host, gateway)
    yield from _agents(host, gateway, hosts)
    yield from _clients(host, gateway, hosts)
    yield from _reached(host, gateway, hosts)
    yield from _one_meaning(host, gateway, hosts, catalog)


def _ports(host: ResolvedHost, gateway: Gateway) -> Iterator[Finding]:
    settings = host.settings
    ports = {("gateway", "port"): gateway.port, ("gateway", "metrics", "port"): gateway.metrics.port}
    others = {service.port: f"service {name}" for name, service in settings.services.items()}
    others |= {settings.image.port: "the passing on of images", settings.weights.spread.port: "that of weights"}
    others |= {host.ssh.port: "ssh"} if not settings.hardware.simulated else {}
    for key, port in ports.items():
        if port in others:
            yield host.name, key, f"port {port} of this host is for {others[port]}", "choose another one"


def _agents(host: ResolvedHost, gateway: Gateway, hosts: Hosts) -> Iterator[Finding]:
    """A host tells all gateways at one port, which nothing else there may have."""
    for other in hosts.values():
        theirs = other.settings.gateway
        if theirs is not None and theirs.agent_port != gateway.agent_port and other.name < host.name:
            what = f"the gateway on {other.name} has agent_port {theirs.agent_port}"
            yield host.name, ("gateway", "agent_port"), what, "give both the same"
        taken = dict(_kept_ports(other)) if _has_any(other, gateway) else {}
        taken |= {service.port: f"service {name}" for name, service in other.settings.services.items()}
        if gateway.agent_port in taken:
            what = f"{taken[gateway.agent_port]} of {other.name} has port {gateway.agent_port}"
            yield host.name, ("gateway", "agent_port"), what, "choose another one"
    if gateway.agent_port in {gateway.port, gateway.metrics.port}:
        yield host.name, ("gateway", "agent_port"), "the gateway itself has that port", "choose another one"


def _kept_ports(host: ResolvedHost) -> Iterator[tuple[int, str]]:
    """Ports of a host beside its services' and its gateway's."""
    settings = host.settings
    yield settings.image.port, "image.port"
    if settings.weights.spread.enabled:
        yield settings.weights.spread.port, "weights.spread.port"
    for name in ("exporters", "prometheus", "grafana"):
        part = getattr(settings.monitoring, name)
        if part is not None:
            yield part.port, f"monitoring.{name}"
    for name, service in settings.services.items():
        if service.cluster is not None and service.cluster.head == host.name:
            yield service.cluster.port, f"the cluster of service {name}"
            yield service.cluster.link_port, f"the cluster of service {name}"


def _clients(host: ResolvedHost, gateway: Gateway, hosts: Hosts) -> Iterator[Finding]:
    """A key tells who asks, and opens nothing but the gateway."""
    engines = {
        service.api_key: name
        for other in hosts.values()
        for name, service in other.settings.services.items()
        if wanted(gateway, name) and service.is_open
    }
    first: dict[str, str] = {}
    for name, client in gateway.clients.items():
        place = ("gateway", "clients", name, "key")
        other = first.setdefault(client.key, name)
        if other != name:
            yield host.name, place, f"{other} has the same key, by which clients are told apart", "name another secret"
        if client.key in engines:
            what = f"service {engines[client.key]} has this key, so the client could ask it without the gateway"
            yield host.name, place, what, "name another secret"


def _reached(host: ResolvedHost, gateway: Gateway, hosts: Hosts) -> Iterator[Finding]:
    """Every service of the gateway at an address that it can reach, with a key that it can present."""
    for other in hosts.values():
        for name, service in other.settings.services.items():
            part = service.cluster is not None and service.cluster.head != other.name
            if not wanted(gateway, name) or part:
                continue
            place = ("services", name)
            if other.name != host.name and is_loopback(service.listen):
                what = f"listens on {service.listen}, where the gateway on {host.name} can not reach it"
                todo = "write listen: 0.0.0.0 and an api_key, or name the gateway's services without it"
                yield other.name, (*place, "listen"), what, todo
            elif reached_at(service, other, host.name) is None:
                what = f"the gateway on {host.name} can not reach this host at {other.address}"
                yield other.name, ("network", "peer_address"), what, "write the host's own address there"
            elif service.is_open and service.api_key is None:
                what = f"the gateway on {host.name} can not know the API key that {other.name} makes for {name} itself"
                yield other.name, (*place, "api_key"), what, "name a secret"
    remote = [one for one in hosts.values() if one.name != host.name and _has_any(one, gateway)]
    if remote and is_loopback(peer_address(host)):
        what = f"{remote[0].name} is asked by this gateway, and can not know it by the address {peer_address(host)}"
        yield host.name, ("network", "peer_address"), what, "write this host's own address there"


def _has_any(host: ResolvedHost, gateway: Gateway) -> bool:
    return any(wanted(gateway, name) for name in host.settings.services)


def _one_meaning(host: ResolvedHost, gateway: Gateway, hosts: Hosts, catalog: Catalog) -> Iterator[Finding]:
    """A service is the same on all of its hosts, and a model's name means one service."""
    first: dict[str, tuple[str, str | None, str | None, tuple[str, ...]]] = {}
    by_model: dict[str, str] = {}
    for other in hosts.values():
        for name, service in other.settings.services.items():
            model = model_name(service, catalog)
            if not wanted(gateway, name) or model is None:
                continue
            if not _MODEL.fullmatch(model):
                what = f"the gateway on {host.name} can not tell requests for {model!r} from others by that name"
                todo = "have it served_as one of letters, digits and . _ : / @ + -"
                yield other.name, ("services", name, "model"), what, todo
                continue
            known = first.setdefault(name, (other.name, model, service.api_key, service.aliases))
            if known[1] != model:
                what = f"service {name} of the gateway on {host.name} serves {model} here and {known[1]} on {known[0]}"
                yield other.name, ("services", name, "model"), what, "have one model behind one name"
            if known[2] != service.api_key and service.api_key is not None and known[2] is not None:
                what = f"service {name} has another API key on {known[0]}, and the gateway on {host.name} presents one"
                yield other.name, ("services", name, "api_key"), what, "name the same secret"
            if known[3] != service.aliases:
                what = f"service {name} of the gateway on {host.name} has other aliases on {known[0]}"
                yield other.name, ("services", name, "aliases"), what, "give it the same on all of its hosts"
            also, meant = next(
                ((by_model[one], one) for one in (model, *service.aliases) if by_model.get(one, name) != name), ("", "")
            )
            by_model |= dict.fromkeys((model, *service.aliases), name)
            if also:
                what = f"services {also} and {name} both serve {meant}, by which requests are told apart"
                yield host.name, ("gateway", "services"), what, "name the gateway's services, with one of them"
                return
