"""Serve: each service's release in force, its systemd unit enabled, its server ready."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyinfra import host
from pyinfra.api import deploy

from modules.facts.survey import Question
from modules.fleet import HostPlan
from modules.operations.engine import service_running, service_there
from roles.rollout import held_to_strategy


def questions(plan: HostPlan) -> Iterator[Question[Any]]:
    """What this stage asks."""
    for service in plan.services:
        yield service_there(service, plan.settings.weights.home)


@deploy("Engine")
def engine(plan: HostPlan) -> None:
    """Start what is to be started; leave alone what serves already."""
    held_to_strategy(plan=plan)
    for service in host.loop(list(plan.services)):
        service_running(name=f"Service {service.name}", plan=service, services=plan)
