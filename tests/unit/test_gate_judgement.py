"""Measurement and thresholds → verdict; when a gate measures and when it only judges."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from modules.catalog import load_catalog
from modules.facts.gate import GateResult, GateState
from modules.facts.service import UnitState
from modules.gating import Verdict, measurement_of, thresholds_id, workload_id
from modules.gating.decision import decide
from modules.gating.need import why_measure
from modules.gating.noted import judgement_document, noted_judgement
from modules.gating.steps import seconds_of, told, whole
from modules.spec.gate import BenchyWorkload, Gate, Threshold
from tests.unit.benchy_report import GOOD, cell, report
from tests.unit.release_samples import lab_gate

WORKLOAD = BenchyWorkload(pp=(512,), tg=(32,), runs=3)
DECODE = "tg32@pp512 c1"  # 61 tok/s in GOOD
GATE = lab_gate()
STORED = GateResult(
    workload_id=workload_id(GATE),
    release="r1",
    finished="2026-11-30T04:45:19Z",
    age_s=3600.0,
    gpu=None,
    versions={"driver": "580.95.05"},
    samples={},
    parts={"benchy": [{"report": json.loads(GOOD), "runs": 3}]},
    faults=(),
    seconds=61.0,
    judgement=None,
)


def verdict(**bounds: float) -> Verdict:
    gate = Gate(workload=WORKLOAD, thresholds={DECODE: Threshold(**bounds)})
    return decide(gate, measurement_of(GOOD, WORKLOAD)).judgement.verdict


@pytest.mark.parametrize(
    ("bounds", "wanted"),
    [
        ({"min": 61}, Verdict.PASS),
        ({"min": 75}, Verdict.FAIL),
        ({"max": 50}, Verdict.FAIL),
        # Within the spread of three runs.
        ({"min": 61.01}, Verdict.WARN),
        ({"min": 50, "warn_min": 62}, Verdict.WARN),
        ({"warn_max": 60}, Verdict.WARN),
        ({"min": 75, "warn_min": 80}, Verdict.FAIL),
    ],
)
def test_bounds(bounds: dict[str, float], wanted: Verdict) -> None:
    assert verdict(**bounds) is wanted


def test_the_worst_line_decides_and_each_says_why() -> None:
    thresholds = {DECODE: Threshold(warn_min=70), "pp512 c1": Threshold(min=2000)}
    judgement = decide(Gate(workload=WORKLOAD, thresholds=thresholds), measurement_of(GOOD, WORKLOAD)).judgement
    assert judgement.verdict is Verdict.FAIL
    assert [line.verdict for line in judgement.lines] == [Verdict.WARN, Verdict.FAIL]
    assert "below 70" in judgement.text()
    assert "1100.00" in judgement.text()


def test_what_was_not_measured_fails_with_its_reason() -> None:
    gate = Gate(workload=WORKLOAD, thresholds={DECODE: Threshold(min=1)})
    judgement = decide(gate, measurement_of(report(cell([1.0] * 3, None)), WORKLOAD)).judgement
    assert judgement.verdict is Verdict.FAIL
    assert "not measured" in judgement.text()


def result(**judged: object) -> GateResult:
    return replace(STORED, judgement=judged or None)


def state(result: GateResult | None, driver: str | None = "580.95.05") -> GateState:
    unit = UnitState(active="active", sub="running", enabled=True, stale=False, job=False)
    return GateState(current="r1", last_good="r1", commit="c", unit=unit, result=result, versions={"driver": driver})


def why(found: GateState, gate: Gate = GATE, *, asked: bool = False) -> str | None:
    return why_measure(gate, None, found, asked=asked)


PASSED = {"verdict": "PASS", "thresholds": thresholds_id(GATE)}


def test_an_unmeasured_release_is_measured() -> None:
    assert why(state(None)) == "this release was never measured"


def test_a_measured_one_is_not_measured_again() -> None:
    assert why(state(result(**PASSED))) is None
    assert why(state(result(**{**PASSED, "verdict": "WARN"}))) is None
    # Cut between the measurement and its judgement.
    assert why(state(result())) is None


def test_other_thresholds_only_judge_again() -> None:
    assert why(state(result(verdict="FAIL", thresholds="former ones"))) is None


def test_a_failure_is_measured_again() -> None:
    assert why(state(result(**{**PASSED, "verdict": "FAIL"}))) == "it failed the last time"


def test_another_workload_is_measured() -> None:
    other = replace(result(**PASSED), workload_id="former one")
    assert "another one than was measured" in (why(state(other)) or "")


def test_another_driver_is_a_reason_and_an_unknown_one_is_none() -> None:
    passed = result(**PASSED)
    assert why(state(passed, "580.126.09")) == (
        "the machine has changed since it was measured: driver 580.95.05 → 580.126.09"
    )
    assert why(state(passed, None)) is None
    assert why(state(replace(passed, versions={}))) is None


def test_an_old_result_is_measured_again_where_the_fleet_file_says_so() -> None:
    old = replace(result(**PASSED), age_s=8 * 86_400.0)
    assert why(state(old)) is None
    assert why(state(old), GATE.model_copy(update={"max_age_days": 9})) is None
    assert why(state(old), GATE.model_copy(update={"max_age_days": 7})) == "the result is 8.0 days old, and may be 7"


def test_who_asks_gets_a_measurement() -> None:
    assert why(state(result(**PASSED)), asked=True) == "asked to"


def test_what_makes_a_workload_another_one() -> None:
    def changed(**changes: object) -> str:
        return workload_id(GATE.model_copy(update={"workload": GATE.workload.model_copy(update=changes)}))

    base = workload_id(GATE)
    assert changed(time_limit_s=99) == base
    assert changed(runs=4) != base
    assert changed(tg=(33,)) != base
    answers = load_catalog().answers["gpt-oss"]
    assert workload_id(GATE, answers) != base
    assert workload_id(GATE, answers) == workload_id(GATE, answers.model_copy(update={"source": "another"}))
    everything = load_catalog().gates["lab-everything"]
    moved = everything.model_copy(deep=True)
    assert moved.sharegpt is not None
    elsewhere = moved.sharegpt.dataset.model_copy(update={"file": "/elsewhere/it.json"})
    moved = moved.model_copy(update={"sharegpt": moved.sharegpt.model_copy(update={"dataset": elsewhere})})
    assert workload_id(moved) == workload_id(everything)


def test_a_noted_judgement_stands_until_the_thresholds_change() -> None:
    measured = measurement_of(GOOD, WORKLOAD)
    judgement = decide(GATE, measured).judgement
    found = state(result(**judgement_document(GATE, judgement, ())))
    assert noted_judgement(GATE, found, measured) == judgement
    tighter = Gate(workload=WORKLOAD, thresholds={DECODE: Threshold(min=6)})
    assert noted_judgement(tighter, found, measured) is None
    # The ledger does not know of the pass: it was cut between the two.
    assert noted_judgement(GATE, replace(found, last_good="r0"), measured) is None
    failed = state(result(**{**judgement_document(GATE, judgement, ()), "verdict": "FAIL"}))
    assert noted_judgement(GATE, failed, measured) is None
    assert noted_judgement(GATE, state(result(**PASSED)), measured) is None


def test_a_gate_says_how_long_it_took_the_last_time_or_else_takes_at_most() -> None:
    same = replace(STORED, seconds=22.0)
    step = whole(GATE, "it is new")
    never = step.text(GATE, seconds_of(GATE, None, replace(state(None), reference=None)))
    assert never == f"measuring, since it is new: at most {told(GATE.budget_s)}"
    # Of this release, else of the one before it.
    for found in (state(same), replace(state(None), reference=same)):
        text = step.text(GATE, seconds_of(GATE, None, found))
        assert text.startswith("measuring, since it is new: about 22 s, as the last time, and at most ")
    # Another workload took another time.
    assert seconds_of(GATE, None, state(replace(same, workload_id="other"))) is None
    assert (told(45), told(600)) == ("45 s", "10 min")
