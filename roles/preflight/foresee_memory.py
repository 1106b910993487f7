"""What each service will take of the memory, before anything is started. Pure.

By the headers of the checkpoint where it is on the host already, else by the size that the catalog gives.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from modules.facts.machine_state import MachineState
from modules.fleet import HostPlan, ServicePlan
from modules.memory import Checkpoint, MemoryPlan, Suggestion, UnplannableError, from_summary
from modules.memory.checkpoint import Shape, share_of, with_draft
from modules.memory.service import machine_for, planned
from modules.spec.model import Model
from roles.preflight.space import model_key

KnownBy = Literal["checkpoint", "catalog", "unknown"]
_GIB = 2**30


@dataclass(frozen=True)
class Foreseen:
    """`plan`: None where it can not be reckoned, for the reason in `why`. `known_by`: of the weights."""

    known_by: KnownBy
    plan: MemoryPlan | None = None
    suggestions: tuple[Suggestion, ...] = ()
    why: str = ""


def foreseen(state: MachineState, plan: HostPlan) -> Mapping[str, Foreseen]:
    """Service → its plan beside the others of the host."""
    known = {service.name: _checkpoint(state, service) for service in plan.services}
    found = {name: checkpoint for name, (checkpoint, _) in known.items() if checkpoint is not None}
    return {service.name: _one(state, plan, service, found, known[service.name][1]) for service in plan.services}


def _one(
    state: MachineState, plan: HostPlan, service: ServicePlan, found: Mapping[str, Checkpoint], known_by: KnownBy
) -> Foreseen:
    if service.name not in found:
        return Foreseen("unknown", why=f"nobody says how large {service.model.repository} is before it is here")
    try:
        machine = machine_for(service.name, plan, state.memory.total, found, {})
        reckoned, suggestions = planned(service, found[service.name], machine)
    except UnplannableError as error:
        return Foreseen("unknown", why=str(error))
    return Foreseen(known_by, reckoned, suggestions)


def _checkpoint(state: MachineState, service: ServicePlan) -> tuple[Checkpoint | None, KnownBy]:
    parts = [_of_model(state, model) for model in service.models]
    checkpoints = [checkpoint for checkpoint, _ in parts if checkpoint is not None]
    if len(checkpoints) < len(parts):
        return None, "unknown"
    whole = checkpoints[0] if len(checkpoints) == 1 else with_draft(checkpoints[0], checkpoints[1])
    if service.cluster is not None:
        whole = share_of(whole, len(service.cluster.hosts))
    return whole, "checkpoint" if all(known == "checkpoint" for _, known in parts) else "catalog"


def _of_model(state: MachineState, model: Model) -> tuple[Checkpoint | None, KnownBy]:
    stored = state.models.get(model_key(model))
    missing = model.size_gib is not None and stored is not None and stored.snapshot < 0.98 * model.size_gib * _GIB
    if stored is not None and stored.checkpoint is not None and not missing:
        return from_summary(stored.checkpoint), "checkpoint"
    if model.size_gib is None:
        return None, "unknown"
    why = "its files are not on the host yet"
    shape = Shape(context=model.context or 0)
    return Checkpoint(tensors={"": round(model.size_gib * _GIB)}, unknown=why, shape=shape), "catalog"
