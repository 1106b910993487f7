"""Prove: each service's speed, measured from the client's side, against its thresholds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyinfra import host
from pyinfra.api import deploy

from modules.facts.survey import Question
from modules.fleet import HostPlan
from modules.operations.gate import gate_passed, gate_there
from modules.operations.tools import tools_installed


def questions(plan: HostPlan) -> Iterator[Question[Any]]:
    """What this stage asks."""
    for service in plan.services:
        if service.gate is not None:
            yield gate_there(service)


@deploy("Gate")
def gate(plan: HostPlan, asked: bool = False) -> None:
    """Measure the releases that there is a reason to measure; judge all of them. `asked`: measure in any case."""
    gated = [service for service in plan.services if service.gate is not None]
    if not gated:
        return
    tools_installed(name="Benchmark")
    for service in host.loop(gated):
        gate_passed(
            name=f"Gate of {service.name}",
            plan=service,
            gate=service.gate,
            home=plan.settings.weights.home,
            asked=asked,
        )
