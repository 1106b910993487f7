"""Output that somebody has published → a measurement that a gate can judge. Tables give no runs, but their spread."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict

from modules.facts.parse.llama_benchy import Metric
from modules.facts.parse.llama_benchy_table import Row, Tables
from modules.facts.parse.markdown import Measured
from modules.facts.parse.vllm_bench import ServeResult
from modules.gating.metrics import Measurement, SeenFault
from modules.gating.serving import by_metric, figures_of


def runs_of(told: Measured, runs: int) -> Metric:
    """So many runs with just that mean and standard deviation (llama-benchy's: of all runs, not of a sample)."""
    shape = [math.cos(math.pi * (2 * at + 1) / (2 * runs)) for at in range(runs)]
    scale = told.std / statistics.pstdev(shape) if runs > 1 else 0.0
    values = tuple(told.mean + scale * step for step in shape)
    return Metric(told.mean, told.std, values)


def measurement_of_table(tables: Tables, runs: int) -> Measurement:
    """A row of generated tokens belongs to the prompt above it. `runs`: as its author's command line says.

    Of a prompt that stands several times the lowest prefill counts, and the longest time, as in a report.
    """
    found: defaultdict[str, list[Measured]] = defaultdict(list)
    prompt: Row | None = None
    for row in tables.rows:
        cell = f"{f' d{row.depth}' if row.depth else ''} c{row.concurrency}"
        if row.context_phase or row.size is None:
            continue
        if row.kind == "pp":
            prompt = row
            _put(found, f"pp{row.size}{cell}", row.total)
            _put(found, f"ttfr@pp{row.size}{cell}", row.ttfr_ms)
        elif prompt is not None:
            _put(found, f"tg{row.size}@pp{prompt.size}{cell}", row.total)
    return Measurement({name: runs_of(_worst(name, each), runs) for name, each in found.items()}, {})


def measurement_of_serving(kind: str, result: ServeResult) -> Measurement:
    """One run of `vllm bench serve`, printed or as JSON. `kind`: `random` or `sharegpt`. Failed requests: a fault."""
    values = by_metric(kind, [figures_of(result)])
    metrics = {name: Metric(value[0], 0.0, value) for name, value in values.items()}
    failed = result.failed or 0
    sent = result.completed + failed
    told = f"{failed} of {sent} requests failed"
    faults = [SeenFault("failed-requests", kind, told)] if failed else []
    faults += [SeenFault("no-requests", kind, "no request was done")] if not sent else []
    return Measurement(metrics, {}, tuple(faults))


def _put(found: defaultdict[str, list[Measured]], name: str, told: Measured | None) -> None:
    if told is not None:
        found[name].append(told)


def _worst(name: str, told: list[Measured]) -> Measured:
    worst = max if name.startswith("ttfr") else min
    return worst(told, key=lambda one: one.mean)
