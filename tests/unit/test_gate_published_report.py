"""Baseline A in the form of llama-benchy's JSON, against its own gate and altered ones."""

from __future__ import annotations

import pytest

from modules.catalog import load_catalog
from modules.facts.parse.markdown import Measured
from modules.gating import Verdict
from modules.gating.decision import decide
from modules.gating.metrics import measurement_of
from modules.gating.published import runs_of
from tests.unit.benchy_report import cell, report

CATALOG = load_catalog()
GATE = CATALOG.gates["vllm-mxfp4-prompt-sizes"]
FIGURES = CATALOG.baselines["vllm-mxfp4-single-stream"].figures


def runs(name: str, factor: float) -> list[float]:
    """Five runs with the published mean and spread."""
    figure = FIGURES[name]
    return [factor * value for value in runs_of(Measured(figure.value, figure.std or 0.0), 5).values]


def report_a(factor: float) -> str:
    cells = [
        cell(
            runs(f"pp{prompt} c1 (run with tg{size})", factor),
            runs(f"tg{size}@pp{prompt} c1", factor),
            prompt=prompt,
            response=size,
        )
        for prompt in GATE.workload.pp
        for size in GATE.workload.tg
    ]
    for one in cells:
        one["ttfr"] = {"mean": 1.0, "std": 0.0, "values": [1.0] * 5}
    return report(*cells)


@pytest.mark.parametrize(("factor", "wanted"), [(1.0, Verdict.PASS), (0.9, Verdict.WARN), (0.55, Verdict.FAIL)])
def test_baseline_a_as_json(factor: float, wanted: Verdict) -> None:
    measured = measurement_of(report_a(factor), GATE.workload)
    assert not measured.missing
    found = decide(GATE, measured)
    assert (found.judgement.verdict, found.settled) == (wanted, True)
