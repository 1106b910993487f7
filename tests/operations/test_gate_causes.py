"""Telemetry of every kind that the catalog knows, as a host keeps it: the gate fails that host and names the cause."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from modules.catalog import load_catalog
from modules.facts.gate import Evidence, GateEvidence, GateResult, GateState, ServiceGate
from modules.fleet import Fleet
from modules.gating import workload_id
from modules.gating.explain import UNKNOWN, Case
from modules.operations import gate_memory
from modules.operations.gate import gate_passed
from modules.reporting.measured import Measured
from modules.spec.gate import BenchyWorkload, Gate, Threshold
from tests.operations.stub_host import StubHost, commands_of
from tests.operations.test_gate_operations import PASSED, RESULT
from tests.unit.benchy_report import cell, report
from tests.unit.release_samples import HOME, service_plan
from tests.unit.test_gate_explain import DECODE, EXPLANATIONS, KINDS, NEAR_MISSES

PLAN = service_plan("vllm-mxfp4", "gpt-oss-120b")
RUNS = 9
# So much that nothing here passes, and that nothing is in doubt.
GATE = Gate(
    workload=BenchyWorkload(runs=RUNS), thresholds={DECODE: Threshold(min=100)}, most_runs=RUNS, time_budget_s=600
)


@pytest.fixture(autouse=True)
def _nothing_remembered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(gate_memory, "load_fleet", lambda: Fleet(name="office", path=tmp_path / "f", hosts={}))
    monkeypatch.setattr(gate_memory, "remember", lambda *_: None)
    monkeypatch.setattr(gate_memory, "load_measured", lambda _: Measured())
    monkeypatch.setattr(gate_memory, "note_gate", lambda *_, **__: None)


def failed(case: Case) -> tuple[list[str], str]:
    """What comes of a gate that a host has measured so: the causes' names as noted on it, and what the run says."""
    values = [*case.metrics[DECODE].values]
    # As many as the gate wants, each but the first like the last of the case.
    values += [values[-1] + 0.05 * (step % 2) for step in range(RUNS - len(values))]
    one = json.loads(report(cell([4000.0] * RUNS, values, prompt=2048, response=128)))
    found: GateResult = replace(
        RESULT,
        workload_id=workload_id(GATE),
        parts={"benchy": [{"report": one, "runs": RUNS}]},
        faults=tuple({"kind": fault.kind, "workload": fault.workload, "told": fault.told} for fault in case.faults),
        judgement=None,
    )
    evidence = Evidence(samples={name: list(values) for name, values in case.telemetry.items()}, log=tuple(case.log))
    before: GateState = replace(PASSED, result=None)
    host = StubHost({ServiceGate: [before, replace(PASSED, result=found)], GateEvidence: evidence})
    commands: list[Any] = commands_of(host, gate_passed, plan=PLAN, gate=GATE, home=HOME, asked=False)
    judge, refusal = commands[-2:]
    noted = json.loads(judge.connector_arguments["_stdin"])
    assert (noted["good"], noted["judgement"]["verdict"]) == (False, "FAIL")
    text: str = refusal.get_raw_value()
    assert text.endswith("exit 1")
    return [cause["name"] for cause in noted["judgement"]["causes"]], text


@pytest.mark.parametrize("name", load_catalog().explanations)
def test_each_rule_of_the_catalog_fails_the_gate_with_its_cause_named(name: str) -> None:
    causes, text = failed(KINDS[name]())
    assert causes == [name]
    assert f"likely cause: {EXPLANATIONS[name].cause} (" in text
    assert "what to do: " in text


@pytest.mark.parametrize("name", ["idle clocks before the first request", "hot, and at full clock"])
def test_a_failure_that_nothing_explains_is_called_unknown_with_what_was_seen(name: str) -> None:
    causes, text = failed(NEAR_MISSES[name])
    assert causes == [UNKNOWN]
    assert "likely cause: unknown (clock " in text
