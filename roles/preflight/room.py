"""Judgement of memory where several services share it: together they must fit, before anything is fetched for them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from modules.catalog import load_catalog
from modules.facts.machine_state import MachineState
from modules.fleet import HostPlan
from modules.spec.lock import Lock
from roles.preflight.finding import Finding, found

_FLAG = r"[a-z-]+: [\d.]+"
_FLAGS = re.compile(rf"{_FLAG}(, {_FLAG})*")


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
        yield found(
            "memory-shared",
            f"memory for service {one.name}",
            one.measured(),
            told(one.claim),
            f"{remedy}; or have it on another host; services.{one.name}.memory_plan: warn starts it all the same",
            settings=_flags(one.name, one.ways),
        )


def _flags(service: str, ways: tuple[str, ...]) -> dict[str, object]:
    """The first way, where it is flags of the service."""
    if not ways or not _FLAGS.fullmatch(ways[0]):
        return {}
    pairs = (each.split(": ") for each in ways[0].split(", "))
    return {f"services.{service}.flags.{flag}": float(value) if "." in value else int(value) for flag, value in pairs}
