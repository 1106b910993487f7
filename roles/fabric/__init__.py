"""The network between Sparks over their QSFP ports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyinfra.api import deploy

from modules.facts.survey import Question
from modules.fleet import HostPlan
from modules.operations.fabric import fabric_answers, fabric_settled, fabric_there


def questions(plan: HostPlan) -> Iterator[Question[Any]]:
    """What this stage asks; nothing of a host without a fabric."""
    if plan.settings.fabric is not None:
        yield fabric_there(plan.settings.fabric, plan.name, plan.simulated)


@deploy("Fabric")
def fabric(plan: HostPlan, undo: bool = False) -> None:
    """Configure the ports as the fleet file says, and try each cable.

    `undo`: ask also a host without a fabric, and set its ports back to what they had before Tinderbox.
    """
    wanted, simulated = plan.settings.fabric, plan.simulated
    if wanted is None and not undo:
        return
    fabric_settled(name="QSFP ports", fabric=wanted, member=plan.name, simulated=simulated)
    if wanted is not None:
        fabric_answers(name="Cables", fabric=wanted, member=plan.name, simulated=simulated)
