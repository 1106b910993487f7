"""The memory plans of a host's services, each beside the others."""

from __future__ import annotations

from collections.abc import Mapping

from modules.fleet import HostPlan, ServicePlan
from modules.memory.advice import Suggestion, nearest
from modules.memory.checkpoint import Checkpoint
from modules.memory.plan import LAB_RESERVE, SYSTEM_RESERVE, Machine, Measured, MemoryPlan
from modules.memory.reckon import plan_memory
from modules.memory.serving import Settings, serving_of


def settings_of(service: ServicePlan) -> Settings:
    """A service's engine, with the flags and variables that decide about memory."""
    return Settings(service.engine, service.flags, {**service.engine.environment, **service.service.environment})


def reserve_of(plan: HostPlan) -> int:
    """What is left to the host's system, in bytes."""
    return LAB_RESERVE if plan.simulated else SYSTEM_RESERVE


def machine_for(
    name: str, plan: HostPlan, memory: int, checkpoints: Mapping[str, Checkpoint], measured: Mapping[str, Measured]
) -> Machine:
    """The machine as one service finds it: what the others of the host claim is not there.

    `memory`: MemTotal in bytes. A service whose checkpoint is not known yet claims nothing.
    """
    reserve = reserve_of(plan)
    alone = Machine(memory, reserve=reserve)
    claims = [
        plan_memory(checkpoints[other.name], serving_of(settings_of(other)), alone, measured.get(other.name)).claim
        for other in plan.services
        if other.name != name and other.name in checkpoints
    ]
    return Machine(memory, neighbours=sum(claims), reserve=reserve)


def planned(
    service: ServicePlan, checkpoint: Checkpoint, machine: Machine, measured: Measured | None = None
) -> tuple[MemoryPlan, tuple[Suggestion, ...]]:
    """The service's plan, and what would fit in its place where it does not.

    Raises `UnplannableError`: its engine or a flag is not understood.
    """
    settings = settings_of(service)
    plan = plan_memory(checkpoint, serving_of(settings), machine, measured)
    return plan, () if plan.fits else nearest(checkpoint, settings, machine, measured)
