"""A measurement as a host has stored it → what reports keep of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from modules.fleet import ServicePlan
from modules.gating.command import workload_command
from modules.gating.decision import decide
from modules.gating.judgement import Judgement, Line, Verdict
from modules.gating.metrics import Measurement
from modules.gating.parts import measurement_of_parts
from modules.reporting.measured import MeasuredService, figure_of
from modules.reporting.report import CauseReport, Series
from modules.spec.answers import Answers
from modules.spec.gate import ANSWERS, BENCHY, COLD_START, RANDOM, SHAREGPT, Gate
from modules.spec.workload import BenchyWorkload, RandomWorkload, ShareGptWorkload

Stored = Mapping[str, Any]


def gate_in(stored: Stored) -> Gate | None:
    """The workloads that were run, without thresholds; None where another version has stored them."""
    ran: Mapping[str, Any] = stored.get("workloads") or {}
    try:
        return Gate.model_construct(
            workload=BenchyWorkload.model_validate(ran[BENCHY]),
            random=RandomWorkload.model_validate(ran[RANDOM]) if RANDOM in ran else None,
            sharegpt=ShareGptWorkload.model_validate(ran[SHAREGPT]) if SHAREGPT in ran else None,
            answers=Answers.model_validate(ran[ANSWERS]) if ANSWERS in ran else None,
            cold_start=COLD_START in ran,
            client=stored.get("client") or "host",
            thresholds={},
        )
    except (KeyError, ValidationError):
        return None


def figures_in(stored: Stored) -> Measurement:
    """Every metric of the workloads that were run then, measured or missing."""
    gate = gate_in(stored)
    if gate is None:
        return Measurement({}, {})
    return measurement_of_parts(gate, stored.get("parts") or {}, stored.get("faults") or ())


def judgement_in(stored: Stored, gate: Gate | None, figures: Measurement) -> Judgement | None:
    """As it was noted on the host; else by the fixed bounds of the gate as it is now, where there is one."""
    noted = stored.get("judgement") or {}
    if noted.get("verdict") not in set(Verdict) or "lines" not in noted:
        return None if gate is None else decide(gate, figures).judgement
    lines = (
        Line(one["metric"], Verdict(one["verdict"]), figures.metrics.get(one["metric"]), one["reason"])
        for one in noted["lines"]
    )
    return Judgement(Verdict(noted["verdict"]), tuple(lines))


def causes_in(stored: Stored) -> tuple[CauseReport, ...]:
    """Why it did not pass, as the gate found when it judged it, with the engine's log at hand."""
    causes = (stored.get("judgement") or {}).get("causes") or ()
    return tuple(CauseReport.model_validate({**one, "evidence": tuple(one["evidence"])}) for one in map(_named, causes))


def _named(cause: Mapping[str, Any]) -> dict[str, Any]:
    return {key: cause[key] for key in CauseReport.model_fields}


def telemetry_in(stored: Stored) -> dict[str, Series]:
    """What was sampled once a second."""
    return {name: tuple(values) for name, values in (stored.get("samples") or {}).items()}


def command_in(stored: Stored, plan: ServicePlan) -> str:
    """The command line of its llama-benchy matrix, without addresses and paths; empty where it is not known."""
    gate = gate_in(stored)
    if gate is None:
        return ""
    return workload_command(gate.workload, plan.model.repository, plan.model.served_as, gate.client)


def measured_in(host: str, plan: ServicePlan, stored: Stored, gpu: str | None) -> MeasuredService | None:
    """The measurement of a service; None where it has no verdict, and no gate to get one from."""
    figures = figures_in(stored)
    judgement = judgement_in(stored, plan.gate, figures)
    if judgement is None:
        return None
    return MeasuredService(
        host=host,
        service=plan.name,
        engine=plan.service.engine,
        profile=plan.service.profile,
        model=plan.model.served_as,
        port=plan.service.port,
        gpu=(stored.get("gpu") or {}).get("name") or gpu,
        release=stored["release"],
        verdict=judgement.verdict,
        measured=stored["finished"],
        metrics={name: figure_of(metric) for name, metric in figures.metrics.items()},
        reasons=[line.text() for line in judgement.lines if line.reason],
        client=stored.get("client") or "host",
        judged_by=str((stored.get("judgement") or {}).get("thresholds") or ""),
    )
