"""What a host has told → what the controller keeps of it and of its services."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from modules.facts.report import HostSeen, ServiceSeen
from modules.fleet import HostPlan, ServicePlan
from modules.gating.judgement import Verdict
from modules.memory import Checkpoint, UnplannableError
from modules.memory.service import machine_for, planned
from modules.reporting.load import load_report
from modules.reporting.measured import ROOT, MeasuredService, remember
from modules.reporting.record import (
    HostRecord,
    ServiceRecord,
    history_point,
    keep,
    keep_host,
    line_reports,
    load_record,
    with_point,
)
from modules.reporting.report import (
    EventReport,
    FailureReport,
    MemoryPart,
    MemoryReport,
    ReleaseReport,
)
from modules.reporting.states import state_of
from modules.reporting.stored import (
    Stored,
    causes_in,
    command_in,
    figures_in,
    judgement_in,
    measured_in,
    telemetry_in,
)


def note_seen(fleet: str, plan: HostPlan, seen: HostSeen, root: Path = ROOT) -> None:
    """Keep all that a host told. Raises `OSError`: the disk is full, or the folder may not be written."""
    for service in plan.services:
        told = seen.services.get(service.name)
        if told is None:
            continue
        former = load_record(fleet, plan.name, service.name, root)
        newest = _measurement_in_force(plan.name, service, told, seen.gpu)
        if newest is not None:
            remember(fleet, newest, root)
        record = _record(plan, service, seen, told, former)
        if record != former:
            keep(fleet, plan.name, service.name, record, root)
    keep_host(fleet, plan.name, HostRecord(seen=seen.at, gpu=seen.gpu, driver=seen.driver, rollout=seen.rollout), root)


def _measurement_in_force(host: str, plan: ServicePlan, told: ServiceSeen, gpu: str | None) -> MeasuredService | None:
    stored = _of_release(told.measurements, told.current)
    return None if stored is None else measured_in(host, plan, stored, gpu)


def _of_release(measurements: Sequence[Stored], release: str | None) -> Stored | None:
    return next((one for one in reversed(measurements) if one.get("release") == release), None)


def _record(
    plan: HostPlan, service: ServicePlan, seen: HostSeen, told: ServiceSeen, former: ServiceRecord
) -> ServiceRecord:
    history = former.history
    for stored in told.measurements:
        measured = measured_in(plan.name, service, stored, seen.gpu)
        if measured is not None:
            history = with_point(history, history_point(measured))
    unit = told.unit
    current = _of_release(told.measurements, told.current)
    return former.model_copy(
        update={
            "state": state_of(unit),
            "unit": f"{unit.active} ({unit.sub})",
            "driver": seen.driver or former.driver,
            "current": told.current,
            "last_good": told.last_good,
            "history": history,
            "releases": _releases(told),
            "memory": _memory(plan, service, seen) or former.memory,
            "load": load_report(service, told.rates, told.ways) or former.load,
            "failure": _failure(service, told),
            **(_of_gate(service, current) if current is not None else {}),
        }
    )


def _releases(told: ServiceSeen) -> tuple[ReleaseReport, ...]:
    return tuple(
        ReleaseReport(
            id=release["id"],
            events=tuple(
                EventReport(at=event["at"], event=event["event"], note=_note(event)) for event in release["events"]
            ),
        )
        for release in told.releases
    )


def _note(event: dict[str, Any]) -> str:
    """What is noted with it, what of the machine had changed, and which rollout and step of it asked for it."""
    told = [event[name] for name in ("note", "changed") if event.get(name)]
    return "; ".join([*told, *([f"rollout {event['rollout']}"] if event.get("rollout") else [])])


def _of_gate(plan: ServicePlan, stored: Stored) -> dict[str, Any]:
    """What the record holds of the measurement in force."""
    judgement = judgement_in(stored, plan.gate, figures_in(stored))
    return {
        "workload": command_in(stored, plan),
        "telemetry": telemetry_in(stored),
        "causes": causes_in(stored),
        "judged": stored["finished"] if judgement is not None else None,
        "lines": line_reports(judgement) if judgement is not None else {},
    }


def _failure(plan: ServicePlan, told: ServiceSeen) -> FailureReport | None:
    """The newest measurement, where it failed and another release serves since."""
    stored = told.measurements[-1] if told.measurements else None
    if stored is None or stored.get("release") == told.current:
        return None
    judgement = judgement_in(stored, plan.gate, figures_in(stored))
    if judgement is None or judgement.verdict is not Verdict.FAIL:
        return None
    return FailureReport(
        release=stored["release"],
        measured=stored["finished"],
        reasons=tuple(line.text() for line in judgement.lines if line.reason),
        causes=causes_in(stored),
        telemetry=telemetry_in(stored),
    )


def _memory(plan: HostPlan, service: ServicePlan, seen: HostSeen) -> MemoryReport | None:
    """The plan by the files that are on the host; None where they, or the engine's flags, are not understood.

    Hosts do not tell of draft models for a report, and a plan without them would say too little.
    """
    if any(each.draft is not None for each in plan.services):
        return None
    checkpoints: dict[str, Checkpoint] = {
        name: told.checkpoint for name, told in seen.services.items() if told.checkpoint is not None
    }
    if seen.memory is None or service.name not in checkpoints:
        return None
    try:
        machine = machine_for(service.name, plan, seen.memory, checkpoints, {})
        found, _ = planned(service, checkpoints[service.name], machine)
    except UnplannableError:
        return None
    parts = (MemoryPart(name=part.name, bytes=part.size, source=part.source) for part in found.parts if part.size > 0)
    return MemoryReport(parts=tuple(parts), machine_bytes=seen.memory)
