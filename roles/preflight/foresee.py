"""What a deploy would do with a host: what it moves, what room and how long that takes. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from modules.check.document import Disk, FindingPart, HostCheck, Memory, Minutes, Move
from modules.facts.machine_state import MachineState, NoPython
from modules.fleet import HostPlan, ServicePlan
from modules.operations.encodings import cache_name
from modules.release.layout import container_name
from modules.spec.lock import Lock
from roles.preflight.finding import Finding
from roles.preflight.foresee_memory import foreseen
from roles.preflight.judge import verdict
from roles.preflight.space import Need, by_disk, has_image, image_name, model_key, needs

_GIB = 2**30
# 1 Gbit/s with what TCP and TLS take of it.
_LINE = 117e6


def checked(state: MachineState | NoPython, plan: HostPlan, lock: Lock, findings: list[Finding]) -> HostCheck:
    """A host's part of the document."""
    told = tuple(_finding(finding) for finding in findings)
    plain = HostCheck(host=plan.name, verdict=verdict(findings), simulated=plan.simulated, findings=told)
    if isinstance(state, NoPython):
        return plain
    coming = needs(state, plan, lock)
    reserve = round(plan.settings.hardware.reserve_disk_gib * _GIB)
    return plain.model_copy(
        update={
            "moves": tuple(moves(state, plan, lock, coming)),
            "disks": tuple(
                Disk(
                    mount=disk.mount,
                    needs=round(sum(need.gib for need in here) * _GIB),
                    reserve=reserve,
                    free=disk.free,
                )
                for disk, here in by_disk(state, coming)
            ),
            "starts": tuple(service.name for service in plan.services if not _runs(state, service)),
            "minutes": tuple(minutes(state, plan, coming)),
            "memory": tuple(memory(state, plan)),
        }
    )


def _finding(one: Finding) -> FindingPart:
    return FindingPart(
        id=one.id, severity=one.severity.value, what=one.what, measured=one.measured, wanted=one.wanted, cost=one.cost,
        remedy=one.remedy, commands=one.commands, settings=dict(one.settings), stage=one.stage,
    )  # fmt: skip


def moves(state: MachineState, plan: HostPlan, lock: Lock, coming: list[Need]) -> Iterator[Move]:
    """All that the services need, and how much of it is still to come."""
    for key, model in {model_key(model): model for model in plan.models}.items():
        need = next((round(need.gib * _GIB) for need in coming if need.model and model_key(need.model) == key), 0)
        unknown = model.size_gib is None and not state.models[key].snapshot
        yield Move(kind="weights", what=model.repository, bytes=None if unknown else need)
    for name, recipe in {image_name(service.recipe, lock): service.recipe for service in plan.services}.items():
        there = has_image(state, name, recipe)
        size = None if recipe.size_gib is None else round(recipe.size_gib * _GIB)
        yield Move(kind="image", what=name, bytes=0 if there else size)
    wanted = {name: entry for service in plan.services for name, entry in service.encodings.items()}
    if wanted:
        missing = sum(
            entry.size for name, entry in wanted.items()
            if {state.encodings.get(name), state.encodings.get(cache_name(entry.url))} != {entry.size}
        )  # fmt: skip
        yield Move(kind="encodings", what=", ".join(sorted(wanted)), bytes=missing)


def minutes(state: MachineState, plan: HostPlan, coming: list[Need]) -> Iterator[Minutes]:
    """How long what is to come takes, as far as anybody knows."""
    for need in coming:
        if need.recipe is not None and need.recipe.template is not None:
            yield _build(state, need)
        else:
            line = max(1, round(need.gib * _GIB / _LINE / 60))
            yield Minutes(what=need.what, from_=None, to=None, source=f"as the line allows; {line} at 1 Gbit/s")
    for service in plan.services:
        if not _runs(state, service):
            limit = service.engine.readiness.start_minutes
            source = (
                "limit of its readiness; unverified on hardware" if not plan.simulated else "limit of its readiness"
            )
            yield Minutes(what=f"start of {service.name}", from_=None, to=limit, source=source)


def _runs(state: MachineState, service: ServicePlan) -> bool:
    return container_name(service.name) in state.running


def _build(state: MachineState, need: Need) -> Minutes:
    assert need.recipe is not None
    measured = state.build_seconds.get(need.recipe.name)
    if measured:
        took = round(measured / 60, 1)
        return Minutes(what=need.what, from_=took, to=took, source="as its steps took on this host before")
    if need.recipe.build_minutes is None:
        return Minutes(what=need.what, from_=None, to=None, source="it was never built on this host")
    least, most = need.recipe.build_minutes
    return Minutes(what=need.what, from_=least, to=most, source="as others reported on a Spark; less from another host")


def memory(state: MachineState, plan: HostPlan) -> Iterator[Memory]:
    """Each service's plan beside the others."""
    for name, one in foreseen(state, plan).items():
        if one.plan is None:
            yield Memory(service=name, known_by="unknown", fits=None, why=one.why)
            continue
        yield Memory(
            service=name, known_by=one.known_by, fits=one.plan.fits, claim=one.plan.claim, of=one.plan.memory,
            start_needs=one.plan.start_needs, left=one.plan.left,
            why="; ".join(problem.text for problem in one.plan.problems),
        )  # fmt: skip
