"""What the operation gives a host for a gate, and that a gate which has passed costs one look."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from modules.facts.gate import GateResult, GateState, ServiceGate
from modules.facts.service import UnitState
from modules.fleet import Fleet
from modules.gating import Verdict, thresholds_id, workload_id
from modules.operations import gate as gate_operations
from modules.operations.gate import gate_passed
from modules.reporting.measured import MeasuredService
from tests.operations.stub_host import StubHost, commands_of
from tests.unit.benchy_report import GOOD, cell, report
from tests.unit.release_samples import COMMIT, HOME, lab_gate, service_plan

PLAN = service_plan()
GATE = lab_gate()
UNIT = UnitState(active="active", sub="running", enabled=True, stale=False, job=False)
RESULT = GateResult(
    workload_id=workload_id(GATE.workload),
    finished="2026-11-30T04:45:19Z",
    gpu="NVIDIA GB10 (simulated)",
    samples={"clock_mhz": {"min": 500.0, "median": 850.0, "max": 2418.0}},
    report=GOOD,
    judgement={"verdict": "PASS", "thresholds": thresholds_id(GATE)},
)
PASSED = GateState(current="r1", last_good="r1", commit=COMMIT, unit=UNIT, result=RESULT)
SLOW = report(cell([1000.0] * 3, [2.0] * 3))


@pytest.fixture(autouse=True)
def remembered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[MeasuredService]:
    """What the controller keeps."""
    kept: list[MeasuredService] = []
    monkeypatch.setattr(gate_operations, "load_fleet", lambda: Fleet(name="office", path=tmp_path / "f", hosts={}))
    monkeypatch.setattr(gate_operations, "remember", lambda _, service: kept.append(service))
    return kept


def given(*states: GateState | None) -> tuple[StubHost, list[Any]]:
    host = StubHost({ServiceGate: list(states)})
    return host, commands_of(host, gate_passed, plan=PLAN, gate=GATE, home=HOME)


def with_result(state: GateState, **changes: Any) -> GateState:
    return replace(state, result=replace(RESULT, **changes))


def test_a_gate_that_has_passed_costs_one_look(remembered: list[MeasuredService]) -> None:
    host, commands = given(PASSED)
    assert commands == []
    assert len(host.asked) == 1
    (kept,) = remembered
    assert (kept.host, kept.verdict, kept.gpu) == ("spark-1", Verdict.PASS, "NVIDIA GB10 (simulated)")
    assert kept.metrics["tg32@pp512 c1"].mean == 61.0


def test_a_new_release_is_measured_judged_and_noted() -> None:
    _, (start, _, judge) = given(replace(PASSED, last_good=None, result=None), with_result(PASSED, judgement=None))
    text = start.get_raw_value()
    assert "run_gate.py --service gpt-oss --release r1 --url http://127.0.0.1:8000" in text
    assert f"snapshots/{COMMIT}" in text
    request = json.loads(judge.connector_arguments["_stdin"])
    assert request["good"] is True
    assert request["judgement"] == {"verdict": "PASS", "thresholds": thresholds_id(GATE)}


def test_other_thresholds_are_judged_without_measuring() -> None:
    _, (judge,) = given(with_result(PASSED, judgement={"verdict": "PASS", "thresholds": "former"}))
    assert judge.get_raw_value().endswith("ledger.py judge")


def test_a_pass_that_the_ledger_does_not_know_is_noted() -> None:
    _, (judge,) = given(replace(PASSED, last_good="r0"))
    assert judge.get_raw_value().endswith("ledger.py judge")


def test_a_failure_fails_the_host_with_figures_and_conditions(remembered: list[MeasuredService]) -> None:
    _, commands = given(replace(PASSED, result=None), with_result(PASSED, report=SLOW, judgement=None))
    judge, refusal = commands[-2:]
    assert json.loads(judge.connector_arguments["_stdin"])["good"] is False
    text = refusal.get_raw_value()
    assert text.endswith("exit 1")
    assert "spark-1: gate of gpt-oss failed" in text
    assert "2.00 ± 0.00  below 5" in text
    assert "850 MHz (500 to 2418)" in text
    assert remembered[0].verdict is Verdict.FAIL


def test_a_failure_is_measured_again_by_the_next_run() -> None:
    failed = {"verdict": "FAIL", "thresholds": thresholds_id(GATE)}
    _, commands = given(with_result(PASSED, report=SLOW, judgement=failed))
    assert "run_gate.py" in commands[0].get_raw_value()
    assert commands[-1].get_raw_value().endswith("exit 1")


def test_a_warning_is_no_failure() -> None:
    warned = report(cell([1000.0] * 3, [20.0] * 3))
    _, (judge,) = given(with_result(PASSED, report=warned, judgement=None))
    request = json.loads(judge.connector_arguments["_stdin"])
    assert (request["good"], request["judgement"]["verdict"]) == (True, "WARN")


@pytest.mark.parametrize(
    ("state", "told"),
    [
        (None, "the gate of service gpt-oss could not be read"),
        (replace(PASSED, current=None, result=None), "run stage engine first"),
    ],
)
def test_a_host_without_a_release_is_refused(state: GateState | None, told: str) -> None:
    _, (refusal,) = given(state)
    assert told in refusal.get_raw_value()


def test_the_fact_reads_what_the_program_prints() -> None:
    answer = {
        "current": "r1",
        "last_good": None,
        "commit": COMMIT,
        "unit": {"ActiveState": "active"},
        "result": {
            "workload_id": "w",
            "finished": "2026-11-30T04:45:19Z",
            "gpu": None,
            "samples": {},
            "report": json.loads(GOOD),
        },
    }
    state = ServiceGate().process([json.dumps(answer)])
    assert state is not None
    assert state.result is not None
    assert (state.result.gpu, state.result.judgement) == (None, None)
    assert ServiceGate().process([json.dumps({**answer, "result": None})]).result is None  # type: ignore[union-attr]
