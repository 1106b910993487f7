"""llama-benchy reports, written in the form that version 0.4.0 writes."""

from __future__ import annotations

import json
from typing import Any

Values = list[float] | None


def metric(values: Values) -> dict[str, Any] | None:
    """`{mean, std, values}`, or null as for what could not be measured."""
    if values is None:
        return None
    mean = sum(values) / len(values)
    deviation = (sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5
    return {"mean": mean, "std": deviation, "values": values}


def cell(
    pp: Values, tg: Values, *, prompt: int = 512, response: int = 32, depth: int = 0, c: int = 1
) -> dict[str, Any]:
    """One cell of the matrix."""
    throughput = {"pp_throughput": metric(pp), "tg_throughput": metric(tg), "ttfr": metric([40.0, 41.0, 42.0])}
    sizes = {"concurrency": c, "context_size": depth, "prompt_size": prompt, "response_size": response}
    return {**sizes, "is_context_prefill_phase": False, **throughput}


def report(*cells: dict[str, Any]) -> str:
    """The whole document."""
    head = {"version": "0.4.0", "timestamp": "2026-11-30 04:45:19Z", "latency_mode": "generation", "latency_ms": 31.4}
    rest = {"model": "m", "prefix_caching_enabled": False, "max_concurrency": 1, "benchmarks": list(cells)}
    return json.dumps({**head, **rest})


GOOD = report(cell([1000.0, 1100.0, 1200.0], [60.0, 61.0, 62.0]))
