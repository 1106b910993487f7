"""Releases by hand: roll back, stop, remove. Environment variables say what is meant (docs/releases.md)."""

from __future__ import annotations

from dataclasses import replace

from pyinfra import host
from pyinfra.api import deploy

from modules.facts.releases import HostReleases
from modules.fleet import HostPlan, ServicePlan, load_fleet
from modules.operations.asked import REMOVE, SERVICE, asked_removals, asked_service
from modules.operations.image_pruning import images_pruned
from modules.operations.pair import members_here, part_follows
from modules.operations.releases import service_removed, service_rolled_back, service_stopped
from modules.operations.require import require
from modules.operations.weights import Wanted, wish_of
from modules.operations.weights_pruned import weights_pruned
from roles.weights.models import needed

_ELSE = {"weights", "images"}


def chosen(plan: HostPlan) -> list[ServicePlan]:
    """The services that are meant: the named one, else all of the host."""
    name = asked_service()
    found = [service for service in plan.services if name in {None, service.name}]
    names = ", ".join(service.name for service in plan.services) or "none"
    require(
        name=f"{SERVICE} names a service",
        # One that other hosts of the fleet have is meant for those.
        ok=bool(found) or name is None or any(name in one.settings.services for one in load_fleet().hosts.values()),
        message=f"{host.name}: {SERVICE}={name}: the fleet file gives this host no such service; it has: {names}",
    )
    return found


@deploy("Rollback")
def rollback(plan: HostPlan) -> None:
    """Have the last good release, or the named one, in the place of what serves."""
    for service in host.loop(chosen(plan)):
        if service.cluster is not None:
            members_here(name=f"Hosts of {service.name}", plan=service)
        if not service.is_worker:
            service_rolled_back(name=f"Release of {service.name}", plan=service)
        else:
            part_follows(name=f"Part of {service.name} as on its head", plan=service)


@deploy("Stop")
def stop(plan: HostPlan) -> None:
    """Have the services stopped."""
    for service in host.loop(chosen(plan)):
        if service.cluster is not None:
            members_here(name=f"Hosts of {service.name}", plan=service)
        if not service.is_worker:
            service_stopped(name=f"Service {service.name}", service=service.name)
        else:
            part_follows(name=f"Part of {service.name} as on its head", plan=service)


@deploy("Remove")
def remove(plan: HostPlan) -> None:
    """Take the named service off the host; without a name those that the fleet file has no more."""
    name, more = asked_service(), asked_removals()
    require(
        name=f"{REMOVE} is understood",
        ok=more <= _ELSE,
        message=f"{host.name}: {REMOVE}: {', '.join(sorted(more - _ELSE))}: write weights, images or weights,images",
    )
    wanted = {service.name for service in plan.services}
    there = host.get_fact(HostReleases) or {}
    names = [name] if name is not None else sorted(set(there) - wanted)
    for each in host.loop(names):
        service_removed(name=f"Service {each}", service=each)
    _remove_more(replace(plan, services=tuple(each for each in plan.services if each.name not in names)), more)


def _remove_more(rest: HostPlan, more: frozenset[str]) -> None:
    """What only the removed services needed. `rest`: the host without them."""
    settings = rest.settings.weights
    if "weights" in more:
        wishes = [
            wish_of(Wanted(model, settings, rest.settings.hardware.reserve_disk_gib)) for model in needed(rest.models)
        ]
        keep = [f"{wish.model.repository}@{wish.commit}" for wish in wishes if wish.commit is not None]
        weights_pruned(name="Models that no release needs", home=settings.home, keep=keep)
    if "images" in more:
        images_pruned(
            name="Images that nothing needs any more",
            recipes=[service.recipe for service in rest.services],
            wanted=True,
        )
