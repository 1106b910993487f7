"""A llama-benchy report → metrics by name, and for each that is missing, why."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from modules.facts.parse.errors import ParseError
from modules.facts.parse.llama_benchy import Metric, Run, parse_benchy_json
from modules.spec.gate import BenchyWorkload


@dataclass(frozen=True)
class SeenFault:
    """What a server did that no speed makes good. `kind`: see modules/hostside/gate_faults.py."""

    kind: str
    workload: str
    told: str


@dataclass(frozen=True)
class Measurement:
    """`metrics`: name (see `BenchyWorkload`) → figures. `missing`: name → why there are none, which is never a pass.

    `faults`: each fails, whatever the figures say.
    """

    metrics: dict[str, Metric]
    missing: dict[str, str]
    faults: tuple[SeenFault, ...] = ()


def _cell(run: Run) -> str:
    return f"{f' d{run.depth}' if run.depth else ''} c{run.concurrency}"


def _whole(metric: Metric | None, runs: int) -> str | None:
    """Why a figure is no measurement, or None when it is one."""
    if metric is None:
        return "not measured (the report has no value)"
    if len(metric.values) < runs:
        return f"not measured ({len(metric.values)} of {runs} runs gave a value)"
    if metric.mean <= 0 or min(metric.values) <= 0:
        return "not measured (a run gave zero)"
    return None


def measurement_of(report: str, workload: BenchyWorkload) -> Measurement:
    """Every metric of the workload, measured or missing. `report`: llama-benchy's JSON."""
    try:
        runs = [run for run in parse_benchy_json(report).runs if not run.context_phase]
    except ParseError as error:
        return Measurement({}, dict.fromkeys(workload.metrics(), str(error)))
    found: defaultdict[str, list[Metric | None]] = defaultdict(list)
    for run in runs:
        cell = _cell(run)
        found[f"pp{run.prompt}{cell}"].append(run.pp)
        found[f"ttfr@pp{run.prompt}{cell}"].append(run.ttfr_ms)
        found[f"tg{run.response}@pp{run.prompt}{cell}"].append(run.tg)
    metrics: dict[str, Metric] = {}
    missing: dict[str, str] = {}
    for name in workload.metrics():
        candidates = found.get(name, [None])
        complaint = next(filter(None, (_whole(metric, workload.runs) for metric in candidates)), None)
        if complaint is not None:
            missing[name] = complaint
            continue
        whole = [metric for metric in candidates if metric is not None]
        worst = max if name.startswith("ttfr") else min
        metrics[name] = worst(whole, key=lambda metric: metric.mean)
    return Measurement(metrics, missing)
