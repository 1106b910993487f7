"""What each host of a fleet is to serve, in words: its services in the order in which they start, and their memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from modules.catalog import Catalog
from modules.fleet.claims import Sizes, memory_of, reserve_of, told
from modules.fleet.compose import model_of
from modules.fleet.fleet import Fleet
from modules.memory.plan import Machine
from modules.spec.fleet import ResolvedHost
from modules.spec.lock import Lock


def placement_lines(placements: Mapping[str, tuple[str, ...]], lock: Lock) -> list[str]:
    """Where each of the fleet's own services is to be, and what of that the lock does not have so."""
    lines = []
    for name, hosts in placements.items():
        known = lock.placements.get(name, ())
        shown = [host if host in known else f"{host} (new)" for host in hosts]
        gone = [host for host in known if host not in hosts]
        no_more = f"; no more on {', '.join(gone)}: deploys/remove.py takes it off" if gone else ""
        lines.append(f"service {name}: on {', '.join(shown) or 'no host'}{no_more}")
    return lines


def plan_lines(fleet: Fleet, catalog: Catalog, lock: Lock) -> list[str]:
    """All of it."""
    sizes = Sizes(catalog, lock)
    lines = placement_lines(fleet.placements, lock)
    for host in fleet.hosts.values():
        lines += _of_host(host, fleet, sizes)
    return lines


def _of_host(host: ResolvedHost, fleet: Fleet, sizes: Sizes) -> Iterator[str]:
    memory, reserve = memory_of(host.settings), reserve_of(host.settings)
    yield f"{host.name}: {told(memory)} of memory, {told(reserve)} of it the system's"
    left, unknown = memory - reserve, 0
    ranked = sorted(host.settings.services.items(), key=lambda one: -one[1].priority)
    for name, service in ranked:
        claim = sizes.claim(service, Machine(memory, reserve=reserve))
        model = model_of(service, sizes.catalog)
        left, unknown = left - (claim or 0), unknown + (claim is None)
        size = "unknown" if claim is None else told(claim)
        names = ", ".join(("" if model is None else model.served_as, *service.aliases))
        placed = ", placed" if host.name in fleet.placements.get(name, ()) else ""
        priority = f", priority {service.priority}" if service.priority else ""
        yield f"    {name}: {size}, port {service.port}, {names} by {service.engine}{priority}{placed}"
    beside = " but for what is unknown" if unknown else ""
    if left >= 0:
        yield f"    {told(left)} left{beside}"
    else:
        refused = not any(service.memory_plan == "warn" for _, service in ranked)
        yield f"    {told(-left)} short{beside}{'; preflight refuses that' if refused else ''}"
