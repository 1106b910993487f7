"""A run of `vllm bench serve` → figures by the names of `modules.spec.workload.SERVE_METRICS`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from modules.facts.parse.vllm_bench import ServeResult
from modules.spec.workload import SERVE_METRICS

_KEYS = {
    "request throughput": "request_throughput",
    "output throughput": "output_throughput",
    "total throughput": "total_token_throughput",
}


def figures_of(result: ServeResult) -> dict[str, float]:
    """Of a run that was printed, or saved as JSON. What it does not tell is not there."""
    found = {
        "request throughput": result.requests_per_second,
        "output throughput": result.output_throughput,
        "total throughput": result.total_throughput,
    }
    for kind, rows in result.latency_ms.items():
        found |= {f"{row} {kind}": value for row, value in rows.items()}
    return {name: value for name, value in found.items() if name in SERVE_METRICS}


def figures_kept(result: Mapping[str, Any]) -> dict[str, float]:
    """Of a run that a host keeps (`bench_serve.py`)."""
    found = {name: result.get(_KEYS.get(name) or f"{name.replace(' ', '_')}_ms") for name in SERVE_METRICS}
    return {name: float(value) for name, value in found.items() if _is_figure(value)}


def _is_figure(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def by_metric(kind: str, runs: Sequence[Mapping[str, float]]) -> dict[str, tuple[float, ...]]:
    """Metric → its values, of those that every run tells."""
    names = [name for name in SERVE_METRICS if runs and all(name in run for run in runs)]
    return {f"{kind} {name}": tuple(run[name] for run in runs) for name in names}
