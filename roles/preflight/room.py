"""Judgement of memory where several services share it: together they must fit, before anything is fetched for them."""

from __future__ import annotations

from collections.abc import Iterator

from modules.catalog import load_catalog
from modules.facts.machine import MachineState
from modules.fleet import HostPlan
from modules.spec.lock import Lock
from roles.preflight.finding import Finding, Severity


def judge_room(state: MachineState, plan: HostPlan, lock: Lock) -> Iterator[Finding]:
    """One finding for every service that no room is left for, by the sizes that are known and by this host's memory."""
    if len(plan.services) < 2:
        return
    # What reckons with memory is loaded where there is something to reckon.
    from modules.fleet.claims import Sizes, reserve_of, told
    from modules.fleet.room_check import crowded
    from modules.memory.plan import Machine

    machine = Machine(state.memory.total, reserve=reserve_of(plan.settings))
    for one in crowded(plan.settings.services, machine, Sizes(load_catalog(), lock)):
        remedy = f"would fit: {', or '.join(one.ways)}" if one.ways else "take a smaller model"
        yield Finding(
            Severity.BLOCKED,
            f"memory for service {one.name}",
            one.measured(),
            told(one.claim),
            f"{remedy}; or have it on another host; services.{one.name}.memory_plan: warn starts it all the same",
        )
