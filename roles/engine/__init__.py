"""Serve: each service's release in force, its systemd unit enabled, its server ready."""

from __future__ import annotations

from pyinfra import host
from pyinfra.api import deploy

from modules.fleet import HostPlan
from modules.operations.engine import service_running
from roles.rollout import held_to_strategy


@deploy("Engine")
def engine(plan: HostPlan) -> None:
    """Start what is to be started; leave alone what serves already."""
    held_to_strategy(plan=plan)
    for service in host.loop(list(plan.services)):
        service_running(name=f"Service {service.name}", plan=service, services=plan)
