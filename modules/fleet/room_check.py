"""Refuse services that can not be beside each other on a host, before it is contacted, and say what would fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

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


@dataclass(frozen=True)
class Crowded:
    """A service for which no room is left. `taken`: what has it, name → bytes; `ways`: what would fit, in words."""

    name: str
    claim: int
    machine: Machine
    taken: Mapping[str, int]
    ways: tuple[str, ...]

    @property
    def left(self) -> int:
        """Bytes that the others leave."""
        return max(0, self.machine.memory - self.machine.reserve - self.machine.neighbours)

    def measured(self) -> str:
        """What there is, in words."""
        others = ", ".join(f"{other} ({told(size)})" for other, size in self.taken.items())
        total, reserve = told(self.machine.memory), told(self.machine.reserve)
        return f"of {total} the system keeps {reserve}; beside {others} {told(self.left)} are left"


def crowded(services: Mapping[str, Service], machine: Machine, sizes: Sizes) -> Iterator[Crowded]:
    """The services of one host that do not fit beside those of a higher priority, which take first."""
    taken: dict[str, int] = {}
    for name, service in sorted(services.items(), key=lambda one: -one[1].priority):
        claim = _claim(service, sizes, machine)
        beside = replace(machine, neighbours=sum(taken.values()))
        room = machine.memory - machine.reserve - beside.neighbours
        if claim is None or claim <= room or service.memory_plan == "warn" or not taken:
            taken[name] = claim or 0
        else:
            yield Crowded(name, claim, beside, dict(taken), tuple(sizes.would_fit(service, beside)))


def _of_host(host: ResolvedHost, hosts: list[ResolvedHost], sizes: Sizes) -> Iterator[tuple[Key, str, str]]:
    services = host.settings.services
    machine = Machine(memory_of(host.settings), reserve=reserve_of(host.settings))
    for one in crowded(services, machine, sizes):
        service = services[one.name]
        flag = next((flag for flag in _FRACTIONS if flag in service.flags), None)
        key = ("services", one.name, "flags", flag) if flag is not None else ("services", one.name)
        ways = [*one.ways, *(f"on host {other}" for other in _elsewhere(one.name, service, host, hosts, sizes))]
        what = f"does not fit on {host.name}: it takes {told(one.claim)}, and {one.measured()}"
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
