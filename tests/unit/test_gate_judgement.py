"""Measurement and thresholds → verdict; when a gate measures and when it only judges."""

from __future__ import annotations

from dataclasses import replace

import pytest

from modules.facts.gate import GateResult
from modules.gating import Verdict, judge, measurement_of, thresholds_id, workload_id
from modules.gating.need import needs_measuring
from modules.spec.gate import BenchyWorkload, Threshold
from tests.unit.benchy_report import GOOD, cell, report
from tests.unit.release_samples import lab_gate

WORKLOAD = BenchyWorkload(pp=(512,), tg=(32,), runs=3)
DECODE = "tg32@pp512 c1"  # 61 tok/s in GOOD


def verdict(**bounds: float) -> Verdict:
    return judge({DECODE: Threshold(**bounds)}, measurement_of(GOOD, WORKLOAD)).verdict


@pytest.mark.parametrize(
    ("bounds", "wanted"),
    [
        ({"min": 61}, Verdict.PASS),
        ({"min": 61.01}, Verdict.FAIL),
        ({"max": 60.9}, Verdict.FAIL),
        ({"min": 50, "warn_min": 62}, Verdict.WARN),
        ({"warn_max": 60}, Verdict.WARN),
        ({"min": 62, "warn_min": 63}, Verdict.FAIL),
    ],
)
def test_bounds(bounds: dict[str, float], wanted: Verdict) -> None:
    assert verdict(**bounds) is wanted


def test_the_worst_line_decides_and_each_says_why() -> None:
    thresholds = {DECODE: Threshold(warn_min=70), "pp512 c1": Threshold(min=2000)}
    judgement = judge(thresholds, measurement_of(GOOD, WORKLOAD))
    assert judgement.verdict is Verdict.FAIL
    assert [line.verdict for line in judgement.lines] == [Verdict.WARN, Verdict.FAIL]
    assert "below 70" in judgement.text()
    assert "1100.00" in judgement.text()


def test_what_was_not_measured_fails_with_its_reason() -> None:
    judgement = judge({DECODE: Threshold(min=1)}, measurement_of(report(cell([1.0] * 3, None)), WORKLOAD))
    assert judgement.verdict is Verdict.FAIL
    assert "not measured" in judgement.text()


def result(**judged: str) -> GateResult:
    return GateResult(
        workload_id=workload_id(lab_gate().workload),
        finished="2026-11-30T04:45:19Z",
        gpu=None,
        samples={},
        report=GOOD,
        judgement=judged or None,
    )


def test_an_unmeasured_release_is_measured() -> None:
    assert needs_measuring(lab_gate(), None)


def test_a_measured_one_is_not_measured_again() -> None:
    gate = lab_gate()
    assert not needs_measuring(gate, result(verdict="PASS", thresholds=thresholds_id(gate)))
    assert not needs_measuring(gate, result(verdict="WARN", thresholds=thresholds_id(gate)))
    # Cut between the measurement and its judgement.
    assert not needs_measuring(gate, result())


def test_other_thresholds_only_judge_again() -> None:
    assert not needs_measuring(lab_gate(), result(verdict="FAIL", thresholds="former ones"))


def test_a_failure_is_measured_again() -> None:
    gate = lab_gate()
    assert needs_measuring(gate, result(verdict="FAIL", thresholds=thresholds_id(gate)))


def test_another_workload_is_measured() -> None:
    gate = lab_gate()
    passed = result(verdict="PASS", thresholds=thresholds_id(gate))
    assert needs_measuring(gate, replace(passed, workload_id="former one"))


def test_what_makes_a_workload_another_one() -> None:
    base = workload_id(WORKLOAD)
    assert workload_id(WORKLOAD.model_copy(update={"time_limit_s": 99})) == base
    assert workload_id(WORKLOAD.model_copy(update={"runs": 4})) != base
    assert workload_id(WORKLOAD.model_copy(update={"tg": (33,)})) != base
