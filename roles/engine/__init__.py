"""Serve: each service's release in force, its systemd unit enabled, its server ready."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyinfra import host
from pyinfra.api import deploy

from modules.facts.survey import Question
from modules.fleet import HostPlan, load_fleet
from modules.operations.engine import service_running, service_there
from modules.operations.pair import pair_linked, part_follows, part_staged
from modules.operations.placement import placements_kept
from roles.rollout import held_to_strategy


def questions(plan: HostPlan) -> Iterator[Question[Any]]:
    """What this stage asks."""
    for service in plan.services:
        yield service_there(service, plan.settings.weights.home)


@deploy("Engine")
def engine(plan: HostPlan) -> None:
    """Start what is to be started; leave alone what serves already."""
    held_to_strategy(plan=plan)
    if any(plan.name in hosts for hosts in load_fleet().placements.values()):
        placements_kept(name="Where services are placed")
    for service in host.loop(list(plan.in_order)):
        if service.cluster is not None:
            pair_linked(name=f"Hosts of {service.name}", plan=service)
        if service.is_worker:
            part_staged(name=f"Part of {service.name}", plan=service, services=plan)
        else:
            service_running(name=f"Service {service.name}", plan=service, services=plan)
        if service.is_worker:
            part_follows(name=f"Part of {service.name} as on its head", plan=service, services=plan)
