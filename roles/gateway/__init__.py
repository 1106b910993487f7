"""One endpoint for the fleet: the agent on each host that serves, and HAProxy on the host that the fleet file names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from pyinfra.api import deploy

from modules.catalog import load_catalog
from modules.facts.survey import Question
from modules.fleet import HostPlan, load_fleet
from modules.fleet.gateway import AgentPlan, GatewayPlan, agent_plan, gateway_plan
from modules.gateway.render import unit_text
from modules.operations.gateway import agent_listens, agent_there, gateway_serves, gateway_there, wanted_files


def questions(plan: HostPlan) -> Iterator[Question[Any]]:
    """What this stage asks."""
    told, wanted = _told(plan), _wanted(plan)
    if told is not None:
        yield agent_there(told, plan)
    if wanted is not None:
        # Whoever is to have the files says that they can not be read.
        with suppress(OSError):
            yield gateway_there(wanted_files(wanted), unit_text())


def _told(plan: HostPlan) -> AgentPlan | None:
    return agent_plan(plan.name, load_fleet().hosts)


def _wanted(plan: HostPlan) -> GatewayPlan | None:
    return gateway_plan(plan.name, load_fleet().hosts, load_catalog())


@deploy("Agent")
def agent(plan: HostPlan) -> None:
    """Have the host tell the fleet's gateways whether it takes requests."""
    told = _told(plan)
    if told is not None:
        agent_listens(name="What gateways are told", plan=told, services=plan)


@deploy("Gateway")
def gateway(plan: HostPlan) -> None:
    """Have the gateway serve, on its host."""
    wanted = _wanted(plan)
    if wanted is not None:
        gateway_serves(name="One endpoint for the fleet", plan=wanted)
