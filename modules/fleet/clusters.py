"""Services that span hosts: what their members must agree on, and where each is reached by the others."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from modules.catalog import Catalog
from modules.fleet.cluster_addresses import given_by_fabric
from modules.fleet.compose import composed_flags, model_of
from modules.fleet.problem import Key, Problem
from modules.fleet.suggest import advice
from modules.fleet.tree import Tree, find
from modules.spec.cluster import Cluster
from modules.spec.fleet import ResolvedHost
from modules.spec.settings import OWN_PROFILE, Service

TreeOf = Callable[[str], Tree]
Finding = tuple[Key, str, str]
"""Key below a host's settings, what is wrong, what to do."""


@dataclass(frozen=True)
class _Case:
    """One cluster as one of its hosts has it. `by_name`: hosts that could be read; `names`: of all in the file."""

    host: ResolvedHost
    service: str
    cluster: Cluster
    by_name: Mapping[str, ResolvedHost]
    names: Sequence[str]

    @property
    def key(self) -> Key:
        """Of the service, below the host's settings."""
        return ("services", self.service)


def cluster_problems(
    hosts: Sequence[ResolvedHost], names: Sequence[str], catalog: Catalog, tree: TreeOf
) -> list[Problem]:
    """Tell what keeps a service from spanning its hosts.

    `hosts`: with addresses. `names`: of all hosts in the file. `tree`: host → its settings, for their places.
    """
    by_name = {host.name: host for host in hosts}
    found: list[tuple[str, Finding]] = []
    for host in hosts:
        for name, service in host.settings.services.items():
            if service.cluster is not None:
                case = _Case(host, name, service.cluster, by_name, names)
                found += [(host.name, one) for one in _rules(case, catalog)]
        found += [(host.name, one) for one in _ports(host)]
    problems = [Problem(find(tree(host), key).origin, what, todo) for host, (key, what, todo) in found]
    # What stands in the defaults is wrong once, and not once a host.
    return list(dict.fromkeys(problems))


def strategy_problem(hosts: Sequence[ResolvedHost], tree: Tree) -> list[Problem]:
    """Tell that a fleet whose hosts go one after the other has some that only go together. `tree`: the whole file's."""
    spanning = sorted(
        {name for host in hosts for name, one in host.settings.services.items() if one.cluster is not None}
    )
    found = tree.child("strategy")
    if found is None or found.is_null or not spanning:
        return []
    what = f"service {spanning[0]} spans hosts, which change together and not host by host"
    return [Problem(found.origin, what, "keep it in a fleet file of its own, without a strategy")]


def _rules(case: _Case, catalog: Catalog) -> Iterator[Finding]:
    key, cluster = (*case.key, "cluster", "hosts"), case.cluster
    unknown = [(at, each) for at, each in enumerate(cluster.hosts) if each not in case.names]
    for at, each in unknown:
        yield (*key, at), f"no host {each!r} in this fleet", advice(each, case.names, "hosts")
    if case.host.name not in cluster.hosts:
        what = f"host {case.host.name} has service {case.service}, and is none of its cluster's hosts"
        yield key, what, "name it there, or give the service to the members alone (a group)"
    elif unknown or any(each not in case.by_name for each in cluster.hosts):
        return
    elif case.host.name == cluster.head:
        yield from _head_rules(case, catalog)
    else:
        yield from _worker_rules(case, case.by_name[cluster.head])


def _head_rules(case: _Case, catalog: Catalog) -> Iterator[Finding]:
    cluster, service = case.cluster, case.host.settings.services[case.service]
    for each in cluster.hosts:
        if case.service not in case.by_name[each].settings.services:
            what = f"member {each} has no service {case.service}"
            yield (*case.key, "cluster", "hosts"), what, f"give it the very same service, or take {each} out"
        if each not in cluster.addresses:
            what = f"it is not known at which address the others reach member {each}"
            todo = f"write it: addresses: {{{each}: …}}, or network.peer_address in that host's settings"
            yield (*case.key, "cluster"), what, todo
    for each, address in cluster.addresses.items():
        given = given_by_fabric(case.by_name[each], address)
        if given and address not in given:
            what = f"{address} is in the network of {each}'s fabric, which gives it {', '.join(given)}"
            yield (*case.key, "cluster", "addresses", each), what, "use one of these, or take it out"
    if service.is_open and service.api_key is None:
        what = f"it listens on {service.listen}, and names no api_key; a cluster's hosts make none of their own"
        yield (*case.key, "listen"), what, "name a secret: api_key: …, or listen on loopback"
    yield from (((*case.key, *where), what, todo) for where, what, todo in _engine_rules(service, catalog))


def _engine_rules(service: Service, catalog: Catalog) -> Iterator[Finding]:
    engine, cluster = catalog.engines.get(service.engine), service.cluster
    if engine is None or cluster is None or service.profile not in {*engine.profiles, OWN_PROFILE}:
        return
    spread = engine.multi_node
    if spread is None:
        able = ", ".join(sorted(one for one, entry in catalog.engines.items() if entry.multi_node is not None))
        what = f"engine {service.engine} can not span hosts (llama.cpp's rpc is not supported)"
        yield ("engine",), what, f"use one of {able}, or take cluster out"
        return
    for flag in service.flags:
        if flag in {**spread.flags, **spread.worker_flags}:
            yield ("flags", flag), "this flag is set by the service's cluster", "take it out"
    model = model_of(service, catalog)
    if model is None:
        return
    flags = composed_flags(engine, service, model)
    sizes = {flag: flags.get(flag, 1) for flag in spread.sizes}
    try:
        product = math.prod(int(str(size)) for size in sizes.values())
    except ValueError:
        return
    if product != len(cluster.hosts):
        told = " x ".join(f"{flag} {size}" for flag, size in sizes.items())
        wrong = next((flag for flag in spread.sizes if flag in service.flags), spread.sizes[0])
        what = f"{told} is for {product} GPUs, and the cluster has {len(cluster.hosts)} hosts with one each"
        yield ("flags", wrong), what, f"take it out for {spread.sizes[0]} {len(cluster.hosts)}, or correct it"


def _worker_rules(case: _Case, head: ResolvedHost) -> Iterator[Finding]:
    service, other = case.host.settings.services[case.service], head.settings.services.get(case.service)
    if other is None:
        return
    todo = f"write it once for all members ({', '.join(case.cluster.hosts)})"
    for key in Service.model_fields:
        if getattr(service, key) == getattr(other, key):
            continue
        what = f"{key} differs from that of the head {head.name}: one engine runs on both"
        if key in {"listen", "port"}:
            what = f"{key} of a worker differs from that of the head {head.name}, and only the head has an API"
        yield (*case.key, key), what, todo
    if case.host.settings.weights.home != head.settings.weights.home:
        what = f"weights.home differs from that of {head.name}, the head of service {case.service}"
        yield ("weights", "home"), what, "use the same on all members"


def _ports(host: ResolvedHost) -> Iterator[Finding]:
    """Ports of one host's clusters that something else of it has."""
    settings = host.settings
    taken = {service.port: f"service {name}" for name, service in settings.services.items()}
    taken[settings.image.port] = "image.port"
    if settings.weights.spread.enabled:
        taken[settings.weights.spread.port] = "weights.spread.port"
    if settings.gateway is not None:
        taken |= {settings.gateway.port: "gateway.port", settings.gateway.metrics.port: "gateway.metrics.port"}
    for name in ("exporters", "prometheus", "grafana"):
        part = getattr(settings.monitoring, name)
        taken |= {} if part is None else {part.port: f"monitoring.{name}.port"}
    for name, service in settings.services.items():
        cluster = service.cluster
        if cluster is None or cluster.head != host.name:
            continue
        for key in ("port", "link_port"):
            port = int(getattr(cluster, key))
            if port in taken:
                yield ("services", name, "cluster", key), f"{port} is that of {taken[port]}", "change it"
            taken[port] = f"services.{name}.cluster.{key}"
