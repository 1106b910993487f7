"""The operating system, as far as the fleet file has wishes of it; none of them is needed to serve."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyinfra.api import deploy

from modules.facts.survey import Question
from modules.fleet import HostPlan
from modules.operations.apt import package_there
from modules.operations.system import EARLYOOM, system_settled, system_there


def questions(plan: HostPlan) -> Iterator[Question[Any]]:
    """What this stage asks."""
    if plan.settings.system.earlyoom:
        yield package_there(EARLYOOM, None)
    yield system_there(plan.settings.system)


@deploy("System")
def system(plan: HostPlan) -> None:
    """Have earlyoom, memory for ssh, swapping, the GPU's clocks and the desktop as they are wished."""
    system_settled(name="Settings of the operating system", system=plan.settings.system)
