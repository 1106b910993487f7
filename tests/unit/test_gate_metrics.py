"""A report → metrics; what is not a measurement is never one by accident."""

from __future__ import annotations

import pytest

from modules.gating import measurement_of
from modules.spec.gate import BenchyWorkload
from tests.unit.benchy_report import GOOD, Values, cell, report

WORKLOAD = BenchyWorkload(pp=(512,), tg=(32,), runs=3)


def test_metrics_by_name() -> None:
    measured = measurement_of(GOOD, WORKLOAD)
    assert measured.missing == {}
    assert {name: round(metric.mean, 2) for name, metric in measured.metrics.items()} == {
        "pp512 c1": 1100.0,
        "ttfr@pp512 c1": 41.0,
        "tg32@pp512 c1": 61.0,
    }
    assert measured.metrics["tg32@pp512 c1"].values == (60.0, 61.0, 62.0)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (None, "no value"),
        ([60.0, 61.0], "2 of 3 runs"),
        ([0.0, 0.0, 0.0], "zero"),
        ([60.0, 0.0, 60.0], "zero"),
    ],
)
def test_what_was_not_measured(values: Values, told: str) -> None:
    measured = measurement_of(report(cell([1000.0] * 3, values)), WORKLOAD)
    assert "tg32@pp512 c1" not in measured.metrics
    assert told in measured.missing["tg32@pp512 c1"]
    assert "pp512 c1" in measured.metrics


@pytest.mark.parametrize(
    "text",
    [
        "",
        "| model | test |",
        "[]",
        '{"benchmarks": []}',
        GOOD.replace("60.0", "NaN", 1),
        GOOD.replace("60.0", "Infinity", 1),
    ],
)
def test_what_is_no_report_measures_nothing(text: str) -> None:
    measured = measurement_of(text, WORKLOAD)
    assert measured.metrics == {}
    assert set(measured.missing) == set(WORKLOAD.metrics())


def test_depth_and_concurrency_are_in_the_name() -> None:
    workload = BenchyWorkload(pp=(128,), tg=(16,), depth=(4096,), concurrency=(4,), runs=3)
    text = report(cell([1.0] * 3, [2.0] * 3, prompt=128, response=16, depth=4096, c=4))
    assert set(measurement_of(text, workload).metrics) == {
        "pp128 d4096 c4",
        "ttfr@pp128 d4096 c4",
        "tg16@pp128 d4096 c4",
    }


def test_of_several_runs_of_a_prompt_the_worst_counts() -> None:
    workload = BenchyWorkload(pp=(512,), tg=(32, 128), runs=3)
    text = report(cell([1000.0] * 3, [60.0] * 3), cell([900.0] * 3, [59.0] * 3, response=128))
    measured = measurement_of(text, workload)
    assert measured.metrics["pp512 c1"].mean == 900.0
    assert measured.metrics["tg128@pp512 c1"].mean == 59.0


def test_one_unmeasured_run_of_a_prompt_spoils_it() -> None:
    workload = BenchyWorkload(pp=(512,), tg=(32, 128), runs=3)
    text = report(cell([1000.0] * 3, [60.0] * 3), cell(None, [59.0] * 3, response=128))
    assert "pp512 c1" in measurement_of(text, workload).missing


def test_a_cell_that_is_not_there_is_missing() -> None:
    workload = BenchyWorkload(pp=(512, 2048), tg=(32,), runs=3)
    assert "tg32@pp2048 c1" in measurement_of(GOOD, workload).missing


def test_the_context_phase_is_another_matter() -> None:
    context = cell([5.0] * 3, [5.0] * 3) | {"is_context_prefill_phase": True}
    measured = measurement_of(report(context, cell([1000.0] * 3, [60.0] * 3)), WORKLOAD)
    assert measured.metrics["pp512 c1"].mean == 1000.0
