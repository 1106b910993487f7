"""Recorded outputs of llama-benchy and `vllm bench serve`, each against a gate of its own figures, and altered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from modules.facts.parse.llama_benchy import Metric, parse_benchy_json
from modules.facts.parse.llama_benchy_table import parse_benchy_table
from modules.facts.parse.vllm_bench import parse_serve_results
from modules.facts.parse.vllm_bench_json import parse_serve_json
from modules.gating import Verdict
from modules.gating.decision import decide
from modules.gating.direction import lower_is_better
from modules.gating.metrics import Measurement, measurement_of
from modules.gating.published import measurement_of_serving, measurement_of_table
from modules.spec.gate import Gate, Threshold
from modules.spec.workload import BenchyWorkload, RandomWorkload

RECORDED = Path(__file__).parents[3] / "shared" / "recorded"
# As in the catalog: decode is compared tightly, all else loosely.
TIGHT, LOOSE = (0.05, 0.15), (0.15, 1 / 3)
# Of single requests, or with a spread that no bound of these would tell from chance.
UNGATED = ("p99", "ttfr", "ttft")


def files(pattern: str) -> list[Path]:
    return sorted(RECORDED.glob(pattern)) if RECORDED.is_dir() else []


def of_table(text: str) -> Measurement:
    return measurement_of_table(parse_benchy_table(text), runs=5)


def of_json(text: str) -> Measurement:
    report = parse_benchy_json(text)
    runs = [run for run in report.runs if not run.context_phase and run.tg is not None and run.pp is not None]
    fewest = min(len(metric.values) for run in runs for metric in (run.tg, run.pp) if metric is not None)
    matrix = BenchyWorkload.model_construct(
        pp=tuple(dict.fromkeys(run.prompt for run in runs)),
        tg=tuple(dict.fromkeys(run.response for run in runs)),
        depth=tuple(dict.fromkeys(run.depth for run in runs)),
        concurrency=tuple(dict.fromkeys(run.concurrency for run in runs)),
        runs=fewest,
    )
    return Measurement(measurement_of(text, matrix).metrics, {})


def of_serving(text: str) -> Measurement:
    result = parse_serve_json(text) if text.lstrip().startswith("{") else parse_serve_results(text)[0]
    return measurement_of_serving("random", result)


def own_gate(measured: Measurement) -> Gate:
    """Bounds around what was measured, wider than its own spread."""
    thresholds: dict[str, Threshold] = {}
    for name, metric in measured.metrics.items():
        if any(word in name for word in UNGATED):
            continue
        warn, fail = TIGHT if name.startswith("tg") else LOOSE
        spread = metric.std / metric.mean
        warn, fail = max(warn, 4 * spread), max(fail, 8 * spread)
        if fail >= 0.9:
            continue
        thresholds[name] = (
            Threshold(max=metric.mean * (1 + fail), warn_max=metric.mean * (1 + warn))
            if lower_is_better(name)
            else Threshold(min=metric.mean * (1 - fail), warn_min=metric.mean * (1 - warn))
        )
    assert thresholds
    random = RandomWorkload() if any(name.startswith("random") for name in thresholds) else None
    return Gate.model_construct(
        workload=_matrix(thresholds), random=random, sharegpt=None, answers=None, cold_start=False,
        thresholds=thresholds, most_runs=None, max_age_days=None, time_budget_s=None, source=None,
    )  # fmt: skip


def _matrix(thresholds: Mapping[str, Threshold]) -> BenchyWorkload:
    """One that measures all of these, whatever sizes they have."""

    class Matrix(BenchyWorkload):
        def metrics(self) -> tuple[str, ...]:
            return tuple(name for name in thresholds if not name.startswith("random"))

    return Matrix(runs=2)


def altered(measured: Measurement, gate: Gate, verdict: Verdict) -> Measurement:
    """Every gated figure moved to where it gets this verdict."""
    metrics = {}
    for name, threshold in gate.thresholds.items():
        metric = measured.metrics[name]
        low, high = (
            (threshold.warn_max, threshold.max) if lower_is_better(name) else (threshold.warn_min, threshold.min)
        )
        assert low is not None
        assert high is not None
        wanted = {Verdict.PASS: metric.mean, Verdict.WARN: (low + high) / 2, Verdict.FAIL: 2 * high - low}[verdict]
        factor = wanted / metric.mean
        # The spread shrinks with it, so that the same number of runs settles it.
        values = tuple(wanted + (value - metric.mean) * min(1.0, factor) / 8 for value in metric.values)
        metrics[name] = Metric(wanted, metric.std / 8, values) if verdict is not Verdict.PASS else metric
    return replace(measured, metrics=metrics)


CASES = [
    *((of_table, path) for path in files("llama-benchy-0*.txt")),
    *((of_json, path) for path in files("llama-benchy-json-*.json")),
    *((of_serving, path) for path in files("vllm-bench-serve-*")),
]

if CASES:

    @pytest.mark.parametrize("verdict", list(Verdict))
    @pytest.mark.parametrize(("read", "path"), CASES, ids=[path.name for _, path in CASES])
    def test_a_recording_against_its_own_gate(read: object, path: Path, verdict: Verdict) -> None:
        assert callable(read)
        measured = read(path.read_text(encoding="utf-8"))
        gate = own_gate(measured)
        assert decide(gate, altered(measured, gate, verdict)).judgement.verdict is verdict


def test_a_gate_of_ones_own_figures_tells_all_three_apart() -> None:
    """So that the test above means something where no recordings are."""
    metric = Metric(59.2, 0.05, (59.1, 59.2, 59.2, 59.2, 59.3))
    measured = Measurement({"tg128@pp2048 c1": metric}, {})
    gate = own_gate(measured)
    for verdict in Verdict:
        assert decide(gate, altered(measured, gate, verdict)).judgement.verdict is verdict
