"""A measurement as a host has stored it → what reports keep of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from modules.facts.gate import GateResult
from modules.fleet import ServicePlan
from modules.gating.decision import decide
from modules.gating.judgement import Judgement, Verdict
from modules.gating.metrics import Measurement, measurement_of
from modules.reporting.measured import MeasuredService, figure_of
from modules.spec.gate import BenchyWorkload, Gate

Stored = Mapping[str, Any]


def workload_in(stored: Stored) -> BenchyWorkload | None:
    """What was run; None where a later version has stored it."""
    try:
        return BenchyWorkload.model_validate(stored["workload"])
    except (KeyError, ValidationError):
        return None


def figures_in(stored: Stored) -> Measurement:
    """Every metric, measured or missing, by the workload that was run then."""
    workload = workload_in(stored)
    if workload is None:
        return Measurement({}, {})
    return measurement_of(GateResult.of({**stored, "samples": {}}).report, workload)


def verdict_in(stored: Stored) -> Verdict | None:
    """As it was judged on the host; None where nobody has judged it yet."""
    judgement = stored.get("judgement") or {}
    return Verdict(judgement["verdict"]) if judgement.get("verdict") in set(Verdict) else None


def judged_now(gate: Gate | None, measurement: Measurement) -> Judgement | None:
    """By the fixed bounds of the gate as it is now."""
    return None if gate is None else decide(gate, measurement).judgement


def measured_in(host: str, plan: ServicePlan, stored: Stored, gpu: str | None) -> MeasuredService | None:
    """The measurement of a service; None where it has no verdict, and no gate to get one from."""
    figures = figures_in(stored)
    judgement = judged_now(plan.gate, figures)
    verdict = verdict_in(stored) or (judgement.verdict if judgement is not None else None)
    if verdict is None:
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
        verdict=verdict,
        measured=stored["finished"],
        metrics={name: figure_of(metric) for name, metric in figures.metrics.items()},
        reasons=[line.text() for line in judgement.lines if line.reason] if judgement is not None else [],
    )
