"""What is odd in what a fleet file says of its hosts together, and may be right all the same: told, never refused."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Sequence

from modules.fleet.problem import Key, Problem
from modules.fleet.tree import Tree, find
from modules.spec.base import is_loopback
from modules.spec.fleet import ResolvedHost
from modules.spec.strategy import Strategy

Finding = tuple[Key, str, str]


def fleet_remarks(
    hosts: Sequence[ResolvedHost], strategy: Strategy | None, tree: Tree, settings: Callable[[str], Tree]
) -> Iterator[Problem]:
    """Tell of what holds nothing back, means nothing, or keeps out the fleet's own: strategy, seeds, exporters.

    `tree`: the whole file's, for places; `settings`: a host's own.
    """
    for key, what, todo in () if strategy is None else _strategy(strategy, len(hosts), tree):
        yield Problem(find(tree, key).origin, what, todo)
    for name, what, todo in _seeds(hosts):
        yield Problem(find(settings(name), ("weights", "spread", "seed")).origin, what, todo)
    for name, what, todo in _exporters(hosts):
        yield Problem(find(settings(name), ("monitoring", "exporters", "scraped_from")).origin, what, todo)


def _strategy(strategy: Strategy, hosts: int, tree: Tree) -> Iterator[Finding]:
    if hosts < 2:
        return
    if strategy.max_failures >= hosts:
        what = f"{strategy.max_failures} of {hosts} hosts may fail, so the fleet never stops"
        yield ("strategy", "max_failures"), what, f"write less than {hosts}; 0 stops at the first"
    if strategy.canary != 0:
        return
    batch = strategy.batch_of(hosts)
    if batch >= hosts:
        what = (
            f"without a canary and with {strategy.batch} of {hosts} hosts together, a bad release reaches all at once"
        )
        yield ("strategy", "batch"), what, "write canary: 1, or a smaller batch"
    soak = find(tree, ("strategy", "soak"))
    if not soak.rest and strategy.soak_s:
        yield ("strategy", "soak"), "without a canary nobody soaks", "write canary: 1, or take soak out"


def _seeds(hosts: Sequence[ResolvedHost]) -> Iterator[tuple[str, str, str]]:
    """Several seeds are meant where they want different models; of one model, one host fetches."""
    seeds: dict[str, list[str]] = {}
    for host in hosts:
        if host.settings.weights.spread.seed and host.settings.weights.spread.enabled:
            for service in host.settings.services.values():
                name = service.model if isinstance(service.model, str) else service.model.repository
                seeds.setdefault(name, []).append(host.name)
    told = set()
    for model, names in seeds.items():
        both = tuple(dict.fromkeys(names))
        if len(both) < 2 or both in told:
            continue
        told.add(both)
        what = f"{', '.join(both)} are all the seed of {model}, and one of them fetches it: that which has most of it"
        yield both[1], what, "name one, and others are tried only where it fails"


def _exporters(hosts: Sequence[ResolvedHost]) -> Iterator[tuple[str, str, str]]:
    """Of hosts whose exporters others may ask: whether the fleet's Prometheus is among them, as far as is known."""
    askers = {host.name: _addresses(host) for host in hosts if host.settings.monitoring.prometheus is not None}
    for host in hosts:
        exporters = host.settings.monitoring.exporters
        if exporters is None or is_loopback(exporters.listen):
            continue
        allowed = [ipaddress.ip_network(one, strict=False) for one in exporters.scraped_from]
        for name, addresses in askers.items():
            known = [one for one in addresses if not any(one in network for network in allowed)]
            if name == host.name or not addresses or len(known) < len(addresses):
                continue
            shown = " or ".join(map(str, addresses))
            yield (
                host.name,
                f"the Prometheus on {name} ({shown}) is not among those who may ask these exporters",
                "add its address, unless it asks from another one",
            )


def _addresses(host: ResolvedHost) -> list[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    """The addresses from which the host may ask others, of those that the file knows; no names."""
    prometheus = host.settings.monitoring.prometheus
    listens = None if prometheus is None else prometheus.listen
    found = []
    for text in dict.fromkeys((host.settings.network.peer_address, host.address, listens)):
        try:
            address = ipaddress.ip_address(text or "")
        except ValueError:
            continue
        if not (address.is_loopback or address.is_unspecified):
            found.append(address)
    return found
