"""Refuse services that can not be beside each other on a host, before it is contacted, and say what would fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from modules.catalog import Catalog
from modules.fleet.claims import Sizes, memory_of, reserve_of, told
from modules.fleet.compose import model_of
from modules.fleet.problem import Key, Problem
from modules.fleet.tree import Tree, find
from modules.memory.plan import Machine
from modules.spec.fleet import ResolvedHost
from modules.spec.lock import Lock
from modules.spec.settings import Service

_FRACTIONS = ("gpu-memory-utilization", "mem-fraction-static")


def several(host: ResolvedHost) -> bool:
    """Whether memory has to be shared there, and is known: a lab host's is this machine's, which is asked later."""
    return len(host.settings.services) > 1 and not host.settings.hardware.simulated


def room_problems(
    hosts: Iterable[ResolvedHost], trees: Mapping[str, Tree], catalog: Catalog, lock: Lock
) -> list[Problem]:
    """Tell which services do not fit. `trees`: host → its settings, for their places."""
    known, sizes = list(hosts), Sizes(catalog, lock)
    return [
        Problem(find(trees[host.name], key).origin, what, todo)
        for host in known
        if several(host)
        for key, what, todo in _of_host(host, known, sizes)
    ]


def _of_host(host: ResolvedHost, hosts: list[ResolvedHost], sizes: Sizes) -> Iterator[tuple[Key, str, str]]:
    """Those of the highest priority take first; what no room is left for is refused."""
    memory, reserve = memory_of(host.settings), reserve_of(host.settings)
    taken: dict[str, int] = {}
    ranked = sorted(host.settings.services.items(), key=lambda one: -one[1].priority)
    for name, service in ranked:
        claim = _claim(service, sizes, Machine(memory, reserve=reserve))
        beside = sum(taken.values())
        if claim is None or beside + claim <= memory - reserve or service.memory_plan == "warn" or not taken:
            taken[name] = claim or 0
            continue
        others = ", ".join(f"{other} ({told(size)})" for other, size in taken.items())
        what = (
            f"does not fit on {host.name}: it takes {told(claim)}, and of {told(memory)} the system keeps "
            f"{told(reserve)}; beside {others} {told(max(0, memory - reserve - beside))} are left"
        )
        flag = next((one for one in _FRACTIONS if one in service.flags), None)
        key = ("services", name, "flags", flag) if flag is not None else ("services", name)
        ways = list(sizes.would_fit(service, Machine(memory, neighbours=beside, reserve=reserve)))
        ways += [f"on host {other}" for other in _elsewhere(name, service, host, hosts, sizes)]
        yield key, what, f"would fit: {', or '.join(ways)}" if ways else "take a smaller model, or another host"


def _claim(service: Service, sizes: Sizes, machine: Machine) -> int | None:
    # What the catalog does not know is told with the names.
    if service.engine not in sizes.catalog.engines or model_of(service, sizes.catalog) is None:
        return None
    return sizes.claim(service, machine)


def _elsewhere(
    name: str, service: Service, here: ResolvedHost, hosts: list[ResolvedHost], sizes: Sizes
) -> Iterator[str]:
    """Other hosts that have room for it, and its port free."""
    if service.cluster is not None:
        return
    for other in hosts:
        settings = other.settings
        if other.name == here.name or name in settings.services:
            continue
        if any(one.port == service.port for one in settings.services.values()):
            continue
        memory, reserve = memory_of(settings), reserve_of(settings)
        machine = Machine(memory, reserve=reserve)
        beside = sum(_claim(one, sizes, machine) or 0 for one in settings.services.values())
        claim = _claim(service, sizes, machine)
        if claim is not None and beside + claim <= memory - reserve:
            yield other.name
