"""What a service will take of its host's memory, reckoned before it is started."""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from pyinfra import host, logger
from pyinfra.api.command import PyinfraCommand

from modules.catalog import load_catalog
from modules.facts.checkpoint import CheckpointFiles, CheckpointState
from modules.fleet import HostPlan, ServicePlan
from modules.memory import Checkpoint, MemoryPlan, UnplannableError, refusal, table_text
from modules.memory.checkpoint import share_of, with_draft
from modules.memory.service import machine_for, planned, reserve_of
from modules.operations.managed_files import ManagedFile
from modules.operations.require import foreseen
from modules.operations.weights import pinned_commit
from modules.release import layout
from modules.release.build import start_seconds
from modules.spec.model import Model

# An operation is asked twice, for the plan of a run and in the run; people are told once.
_told: set[tuple[str, tuple[str, ...]]] = set()


@dataclass(frozen=True)
class Reckoned:
    """`plan`: None where memory can not be reckoned, for the reason in `lines`. `refused`: why it can not fit."""

    plan: MemoryPlan | None
    lines: tuple[str, ...]
    refused: tuple[str, ...] = ()


def memory_of(services: HostPlan, plan: ServicePlan, commit: str) -> Reckoned | None:
    """Reckon with the checkpoints as they lie on the host; None while the service's own is not there.

    `services`: all of the host, each of which has its claim. `commit`: of the service's model.
    """
    memory, found, home = 0, dict[str, Checkpoint](), services.settings.weights.home
    for each in services.services:
        known = commit if each.name == plan.name else pinned_commit(each.model)
        state = _checkpoint(each.model, known, home)
        if state is not None:
            memory, found[each.name] = state.memory_total, state.checkpoint
            draft = None if each.draft is None else _checkpoint(each.draft, pinned_commit(each.draft), home)
            if draft is not None:
                found[each.name] = with_draft(state.checkpoint, draft.checkpoint)
            if each.cluster is not None:
                found[each.name] = share_of(found[each.name], len(each.cluster.hosts))
    return reckon(services, plan, memory, found) if plan.name in found else None


def _checkpoint(model: Model, commit: str | None, home: str) -> CheckpointState | None:
    if commit is None:
        return None
    directory = layout.snapshot_directory(home, model.repository, commit)
    return host.get_fact(CheckpointFiles, directory=directory, file=model.file)


def reckon(services: HostPlan, plan: ServicePlan, memory: int, found: dict[str, Checkpoint]) -> Reckoned:
    """Judge the service's plan. `memory`: MemTotal in bytes; `found`: service → its checkpoint."""
    try:
        machine = machine_for(plan.name, services, memory, found, {})
        reckoned, suggestions = planned(plan, found[plan.name], machine)
    except UnplannableError as error:
        return Reckoned(None, (f"what {plan.name} takes of the memory can not be reckoned: {error}",))
    lines = tuple(table_text(reckoned, f"memory plan of {plan.name}").splitlines())
    return Reckoned(reckoned, lines, tuple(refusal(reckoned, suggestions)))


def needed_memory(reckoned: Reckoned | None) -> int:
    """MemAvailable in bytes that the unit's memory gate asks for; 0, and it asks for nothing, without a plan that fits.

    A plan that does not fit gets as far as a unit only where the fleet file says so.
    """
    if reckoned is None or reckoned.plan is None or reckoned.refused:
        return 0
    return reckoned.plan.start_needs


def memory_document(services: HostPlan, plan: ServicePlan, reckoned: Reckoned | None) -> dict[str, Any]:
    """What gate and guard of the service's memory are told (modules/hostside/memory_gate.py, load_guard.py).

    Who starts a service although it does not fit is not kept from starting it beside another engine either.
    """
    return {
        "needs": needed_memory(reckoned),
        "reserve": reserve_of(services),
        "engines": watched_engines(plan),
        "service": plan.name,
    }


def watched_engines(plan: ServicePlan) -> list[str]:
    """By what an engine is known beside which the service is not started; empty where the fleet file does not care."""
    watched = plan.service.memory_plan == "refuse"
    return sorted({engine.process for engine in load_catalog().engines.values()}) if watched else []


def services_file(services: HostPlan) -> ManagedFile:
    """Which services of Tinderbox belong on the host together; every other engine is a stranger there.

    `keep` is there for those of which more than the last good release stays startable (hostside/kept_releases.py). Of
    several also in which order they start, and how long each start may take (modules/hostside/load_turn.py).
    """
    document: dict[str, Any] = {"services": sorted(service.name for service in services.services)}
    keep = {one.name: one.service.keep for one in services.services if one.service.keep > 1}
    document |= {"keep": keep} if keep else {}
    if len(services.services) > 1:
        document["order"] = [service.name for service in services.in_order]
        document["start_s"] = {service.name: start_seconds(service) for service in services.in_order}
        document["spans"] = [service.name for service in services.in_order if service.cluster is not None]
    return ManagedFile(layout.services_file(), json.dumps(document) + "\n")


def room_for(plan: ServicePlan, reckoned: Reckoned | None) -> Generator[PyinfraCommand, None, None]:
    """Show the plan; refuse a service that does not fit, or only say so where the fleet file asks for that."""
    if reckoned is None:
        return
    if (host.name, reckoned.lines) not in _told:
        _told.add((host.name, reckoned.lines))
        for line in reckoned.lines:
            host.log(line)
    if not reckoned.refused:
        return
    reasons = "\n".join(f"  {line}" for line in reckoned.refused)
    message = f"{host.name}: service {plan.name} does not fit into the memory:\n{reasons}\n"
    setting = f"services.{plan.name}.memory_plan"
    if plan.service.memory_plan == "warn":
        host.log(f"{message}{setting} is warn: it is started all the same", log_func=logger.warning)
        return
    yield foreseen(f"{message}What runs was left running. To start it all the same: {setting}: warn")
