"""The operating system, as far as the fleet file has wishes of it; none of them is needed to serve."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyinfra.api import deploy

from modules.facts.survey import Question
from modules.fleet import HostPlan, load_fleet
from modules.fleet.gateway import agent_plan
from modules.operations.apt import package_there
from modules.operations.system import EARLYOOM, system_settled, system_there


def questions(plan: HostPlan) -> Iterator[Question[Any]]:
    """What this stage asks."""
    if plan.settings.system.earlyoom:
        yield package_there(EARLYOOM, None)
    yield system_there(plan.settings.system, plan.settings.gateway is not None, _has_agent(plan))


def _has_agent(plan: HostPlan) -> bool:
    """Whether a gateway of the fleet sends the host requests."""
    return agent_plan(plan.name, load_fleet().hosts) is not None


@deploy("System")
def system(plan: HostPlan) -> None:
    """Have earlyoom, memory for ssh, swapping, the GPU's clocks and the desktop as they are wished."""
    system_settled(
        name="Settings of the operating system",
        system=plan.settings.system,
        gateway=plan.settings.gateway is not None,
        agent=_has_agent(plan),
    )
