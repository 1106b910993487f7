"""What a host keeps of a gate's workloads → metrics by name, what is missing of them, and faults."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from modules.facts.parse.llama_benchy import Metric
from modules.gating.metrics import Measurement, SeenFault, measurement_of
from modules.gating.pooling import pooled
from modules.gating.serving import by_metric, figures_kept
from modules.spec.gate import BENCHY, COLD_START, RANDOM, SHAREGPT, Gate

Kept = Mapping[str, Sequence[Mapping[str, Any]]]
"""Workload → its repetitions, as `run_gate.py` keeps them."""


def measurement_of_parts(gate: Gate, parts: Kept, faults: Sequence[Mapping[str, str]] = ()) -> Measurement:
    """Every metric of the gate's workloads, measured or missing."""
    found = [_benchy(gate, parts.get(BENCHY) or ())]
    found += [_served(gate, kind, parts.get(kind) or ()) for kind in (RANDOM, SHAREGPT) if kind in gate.runs()]
    found += [_cold_start(parts.get(COLD_START) or ())] if gate.cold_start else []
    seen = [SeenFault(one["kind"], one["workload"], one["told"]) for one in faults]
    seen += [SeenFault("no-requests", kind, "it was not run") for kind in gate.kinds() if not parts.get(kind)]
    metrics = {name: metric for one in found for name, metric in one.metrics.items()}
    missing = {name: why for one in found for name, why in one.missing.items()}
    lost = {name: "not measured" for name in gate.metrics() if name not in metrics and name not in missing}
    return Measurement(metrics, missing | lost, _once(seen))


def _once(seen: Sequence[SeenFault]) -> tuple[SeenFault, ...]:
    """A workload that was never run after another one's fault adds nothing to that."""
    real = [one for one in seen if one.told != "it was not run"]
    return tuple(real or seen)


def _benchy(gate: Gate, repetitions: Sequence[Mapping[str, Any]]) -> Measurement:
    measured = [
        measurement_of(json.dumps(one["report"]), gate.workload.model_copy(update={"runs": one["runs"]}))
        for one in repetitions
        if one.get("report")
    ]
    if not measured or len(measured) < len(repetitions):
        return Measurement({}, dict.fromkeys(gate.workload.metrics(), "not measured (a repetition has no report)"))
    return pooled(measured)


def _served(gate: Gate, kind: str, repetitions: Sequence[Mapping[str, Any]]) -> Measurement:
    workload = gate.random if kind == RANDOM else gate.sharegpt
    results = [result for one in repetitions for result in one.get("results") or ()]
    values = by_metric(kind, [figures_kept(result) for result in results])
    names = workload.metrics() if workload is not None else ()
    return Measurement(
        {name: metric_of(figures) for name, figures in values.items()},
        {name: "not measured (a run does not tell it)" for name in names if name not in values},
    )


def _cold_start(repetitions: Sequence[Mapping[str, Any]]) -> Measurement:
    seconds = (repetitions[-1].get("seconds") or {}) if repetitions else {}
    found = dict(_named(seconds))
    return Measurement({name: metric_of((value,)) for name, value in found.items()}, {})


def _named(seconds: Mapping[str, float | None]) -> Iterator[tuple[str, float]]:
    for key in ("launch_to_ready", "weights_loading", "kv_cache", "graph_capture"):
        value = seconds.get(key)
        # A part of no time at all is one that the log does not show.
        if value is not None and value > 0:
            yield f"cold start {key.replace('_', ' ')}", value


def metric_of(values: Sequence[float]) -> Metric:
    """Mean and standard deviation of runs."""
    return Metric(statistics.fmean(values), statistics.pstdev(values), tuple(values))
