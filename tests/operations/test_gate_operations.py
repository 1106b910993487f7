"""What the operation gives a host for a gate, and that a gate which has passed costs one look."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyinfra.api import FileUploadCommand, FunctionCommand, StringCommand

from modules.catalog import load_catalog
from modules.facts.gate import Evidence, GateEvidence, GateResult, GateState, ServiceGate
from modules.facts.service import UnitState
from modules.fleet import Fleet
from modules.fleet.files import DATASETS
from modules.gating import Verdict, measurement_of, thresholds_id, workload_id
from modules.gating.decision import decide
from modules.gating.noted import judgement_document
from modules.operations import drain, gate_memory, start_job
from modules.operations.gate import gate_passed
from modules.reporting.measured import Figure, Measured, MeasuredService
from modules.spec.gate import Gate
from tests.operations.stub_host import StubHost, commands_of
from tests.unit.benchy_report import GOOD, cell, report
from tests.unit.release_samples import COMMIT, HOME, lab_gate, service_plan

PLAN = service_plan()
GATE = lab_gate()
UNIT = UnitState(active="active", sub="running", enabled=True, stale=False, job=False)
NOTED = judgement_document(GATE, decide(GATE, measurement_of(GOOD, GATE.workload)).judgement, ())


def parts(text: str, *more: str) -> dict[str, list[dict[str, Any]]]:
    found = [json.loads(one) for one in (text, *more)]
    return {"benchy": [{"report": one, "runs": len(one["benchmarks"][0]["tg_throughput"]["values"])} for one in found]}


RESULT = GateResult(
    workload_id=workload_id(GATE),
    release="r1",
    finished="2026-11-30T04:45:19Z",
    age_s=60.0,
    gpu="NVIDIA GB10 (simulated)",
    versions={"driver": "580.95.05"},
    samples={"clock_mhz": {"min": 500.0, "median": 850.0, "max": 2418.0}},
    parts=parts(GOOD),
    faults=(),
    seconds=40.0,
    judgement=NOTED,
)
PASSED = GateState(current="r1", last_good="r1", commit=COMMIT, unit=UNIT, result=RESULT)
SLOW = report(cell([1000.0] * 3, [2.0] * 3))


@pytest.fixture(autouse=True)
def remembered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[MeasuredService]:
    """What the controller keeps."""
    kept: list[MeasuredService] = []
    monkeypatch.setattr(gate_memory, "load_fleet", lambda: Fleet(name="office", path=tmp_path / "f", hosts={}))
    monkeypatch.setattr(gate_memory, "remember", lambda _, service: kept.append(service))
    monkeypatch.setattr(gate_memory, "load_measured", lambda _: Measured())
    monkeypatch.setattr(gate_memory, "note_gate", lambda *_, **__: None)
    return kept


def given(
    *states: GateState | None, evidence: Evidence | None = None, gate: Gate = GATE, asked: bool = False
) -> tuple[StubHost, list[Any]]:
    host = StubHost({ServiceGate: list(states), GateEvidence: evidence or Evidence()})
    return host, commands_of(host, gate_passed, plan=PLAN, gate=gate, home=HOME, asked=asked)


def starts(commands: list[Any]) -> list[StringCommand]:
    """Those that start a measurement."""
    return [one for one in commands if isinstance(one, StringCommand) and "run_gate.py" in one.get_raw_value()]


def measuring(command: Any) -> dict[str, Any]:
    """What a command that starts the job asks the host to measure."""
    words = shlex.split(command.get_raw_value())
    found = {name: words[words.index(f"--{name}") + 1] for name in ("measure", "budget")}
    return {"measure": json.loads(found["measure"]), "budget": float(found["budget"]), "append": "--append" in words}


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
    assert request["judgement"] == NOTED
    assert measuring(start) == {"measure": {"benchy": 3}, "budget": 1920.0, "append": False}


def test_behind_a_gateway_it_is_drained_before_it_is_measured() -> None:
    behind = replace(PASSED, last_good=None, result=None, has_gateway=True)
    _, (hold, start, follow, _) = given(behind, with_result(PASSED, judgement=None))
    assert hold.get_raw_value() == "/usr/bin/python3 /usr/local/lib/tinderbox/drain.py hold gpt-oss --measure"
    assert "run_gate.py" in start.get_raw_value()
    # What comes to nothing has the good release back in its gateways' turn.
    assert follow.function is drain.measured
    assert follow.args[-1] == "gpt-oss"


def test_one_that_a_cut_run_has_left_drained_is_sent_requests_again() -> None:
    _, (opened,) = given(replace(PASSED, has_gateway=True, closed=True))
    assert opened.get_raw_value() == "/usr/bin/python3 /usr/local/lib/tinderbox/drain.py open gpt-oss"
    assert given(replace(PASSED, has_gateway=True))[1] == []


def test_a_release_that_another_run_has_put_in_force_since_is_not_measured_for_this_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(start_job, "_started", {("spark-1", "gpt-oss"): "r0"})
    _, (refusal,) = given(replace(PASSED, result=None))
    text = refusal.get_raw_value()
    assert "spark-1: this run started release r0 of gpt-oss, and another one has put r1 in force since" in text
    assert text.endswith("exit 1")


def test_other_thresholds_are_judged_without_measuring() -> None:
    _, (judge,) = given(with_result(PASSED, judgement={"verdict": "PASS", "thresholds": "former"}))
    assert judge.get_raw_value().endswith("judge_release.py")


def test_a_pass_that_the_ledger_does_not_know_is_noted() -> None:
    _, (judge,) = given(replace(PASSED, last_good="r0"))
    assert judge.get_raw_value().endswith("judge_release.py")


def test_a_failure_fails_the_host_with_figures_and_conditions(remembered: list[MeasuredService]) -> None:
    low = Evidence(samples={"clock_mhz": [611.0] * 9, "power_w": [17.0] * 9, "utilisation_percent": [96.0] * 9})
    _, commands = given(
        replace(PASSED, result=None), with_result(PASSED, parts=parts(SLOW), judgement=None), evidence=low
    )
    judge, refusal = commands[-2:]
    assert json.loads(judge.connector_arguments["_stdin"])["judgement"]["causes"][0]["cause"] == "low-power state"
    assert json.loads(judge.connector_arguments["_stdin"])["good"] is False
    text = refusal.get_raw_value()
    assert text.endswith("exit 1")
    assert "spark-1: gate of gpt-oss failed" in text
    assert "2.00 ± 0.00  below 5" in text
    assert "850 MHz (500 to 2418)" in text
    assert "likely cause: low-power state (clock 611 MHz; power 17 W)" in text
    assert remembered[0].verdict is Verdict.FAIL


SLOW_GATE = {"parts": parts(SLOW), "judgement": None, "finished": "2026-11-30T05:45:19Z"}


def failing(last_good: str | None, **changes: Any) -> tuple[StubHost, list[Any]]:
    """A release `r1` that fails its gate, on a host whose last good one is as given."""
    new = replace(with_result(PASSED, **{**SLOW_GATE, **changes}), last_good=last_good)
    return given(replace(new, result=None), new)


def test_a_release_that_fails_its_gate_makes_way_for_the_last_good_one() -> None:
    host, commands = failing("r0")
    judge, start, follow, refusal = commands[-4:]
    request = json.loads(judge.connector_arguments["_stdin"])
    assert (request["good"], request["proven"]) == (False, True)
    assert "tg32@pp512 c1: 2.00 below 5" in request["reason"]
    assert "start_service.py gpt-oss --settle" in start.get_raw_value()
    assert isinstance(follow, FunctionCommand)
    assert "release r1 of gpt-oss failed its gate, and release r0 serves again" in refusal.get_raw_value()
    assert refusal.get_raw_value().endswith("exit 1")
    # The figures are told before the wait.
    assert any("2.00 ± 0.00  below 5" in line for line in host.logged)


@pytest.mark.parametrize(
    ("last_good", "told"),
    [(None, "There is no good release to go back to"), ("r1", "Release r1 was good before and is the last good one")],
)
def test_with_nothing_to_go_back_to_it_goes_on_serving_and_the_run_fails(last_good: str | None, told: str) -> None:
    _, commands = failing(last_good)
    assert not any("--settle" in str(one) for one in commands)
    assert told in commands[-1].get_raw_value()
    assert "goes on serving" in commands[-1].get_raw_value()


def test_a_last_good_release_that_fails_after_an_upgrade_names_what_has_changed() -> None:
    before = {"driver": "580.95.05", "kernel": "6.17.0-1029-nvidia", "CUDA toolkit": "none"}
    now = {**before, "driver": "580.126.09"}
    upgraded = replace(PASSED, versions=now, proved_on=before)
    host, commands = given(upgraded, with_result(upgraded, **SLOW_GATE, versions=now))
    told = "since the machine has changed since it was measured: driver 580.95.05 → 580.126.09"
    assert any(told in line for line in host.logged)
    assert "Since it was last good: driver 580.95.05 → 580.126.09." in commands[-1].get_raw_value()
    # Nothing was upgraded: it is said on what it was good.
    same = replace(with_result(PASSED, **SLOW_GATE, versions=before), last_good="r1", versions=before, proved_on=before)
    _, commands = given(replace(same, result=None), same)
    assert (
        "No part of the machine that was noted then has another version now (driver 580.95.05, "
        "kernel 6.17.0-1029-nvidia)." in commands[-1].get_raw_value()
    )


def test_a_server_is_not_rolled_back_for_what_could_not_be_measured() -> None:
    holed = with_result(PASSED, parts=parts(report(cell(None, [61.0] * 3))), judgement=None)
    state = replace(holed, last_good="r0")
    again = with_result(state, parts=holed.result.parts, judgement=None, finished="2026-11-30T04:46:19Z")  # type: ignore[union-attr]
    _, commands = given(replace(state, result=None), state, again)
    judge, refusal = commands[-2:]
    assert json.loads(judge.connector_arguments["_stdin"])["proven"] is False
    assert "No figure speaks against the server, so release r1 goes on serving" in refusal.get_raw_value()
    assert not any("--settle" in str(one) for one in commands)


@pytest.mark.parametrize(
    ("kind", "client", "proven"),
    [
        ("cached-answers", "host", True),
        ("server-died", "controller", True),
        ("failed-requests", "host", True),
        # A lost connection looks the same from here.
        ("failed-requests", "controller", False),
        ("no-requests", "host", False),
    ],
)
def test_a_fault_of_the_way_is_no_fault_of_the_server(kind: str, client: str, proven: bool) -> None:
    fault = {"kind": kind, "workload": "benchy", "told": "so"}
    _, commands = failing("r0", parts=parts(GOOD), faults=(fault,), client=client)
    judge = next(one for one in commands if "judge_release.py" in str(one))
    assert json.loads(judge.connector_arguments["_stdin"])["proven"] is proven
    assert any("--settle" in str(one) for one in commands) is proven


def test_a_failure_is_measured_again_by_the_next_run() -> None:
    failed = {"verdict": "FAIL", "thresholds": thresholds_id(GATE)}
    _, commands = given(with_result(PASSED, parts=parts(SLOW), judgement=failed))
    assert "run_gate.py" in commands[0].get_raw_value()
    assert commands[-1].get_raw_value().endswith("exit 1")


def test_a_warning_is_no_failure() -> None:
    # Near what it warns below, and too steady to be in doubt.
    warned = report(cell([1000.0] * 3, [20.0] * 3))
    _, (judge,) = given(with_result(PASSED, parts=parts(warned), judgement=None))
    request = json.loads(judge.connector_arguments["_stdin"])
    assert (request["good"], request["judgement"]["verdict"]) == (True, "WARN")


def test_a_warning_never_rolls_back() -> None:
    warned = report(cell([1000.0] * 3, [20.0] * 3))
    _, (judge,) = given(replace(with_result(PASSED, parts=parts(warned), judgement=None), last_good="r0"))
    assert json.loads(judge.connector_arguments["_stdin"])["good"] is True


DOUBTFUL = lab_gate(thresholds={"tg32@pp512 c1": {"min": 60.5}})
SCATTERED = report(cell([1000.0] * 3, [59.0, 61.0, 62.0]))
BETTER = report(cell([1000.0] * 3, [63.0, 64.0, 64.5]))


def test_in_doubt_it_measures_more_and_judges_all_runs_together() -> None:
    first = with_result(PASSED, parts=parts(SCATTERED), judgement=None)
    then = with_result(PASSED, parts=parts(SCATTERED, BETTER, BETTER, BETTER), judgement=None)
    host, commands = given(replace(PASSED, result=None), first, then, gate=DOUBTFUL)
    started = [measuring(one) for one in starts(commands)]
    assert [(one["measure"], one["append"]) for one in started] == [({"benchy": 3}, False), ({"benchy": 3}, True)]
    # What was spent on the first runs is off the budget of the others.
    assert started[1]["budget"] == started[0]["budget"] - RESULT.seconds
    assert json.loads(commands[-1].connector_arguments["_stdin"])["judgement"]["verdict"] == "PASS"
    assert any("the verdict is in doubt" in line and "3 more of benchy" in line for line in host.logged)


def test_a_host_on_which_nothing_is_measured_is_told_and_not_asked_for_ever() -> None:
    stuck = with_result(PASSED, parts=parts(SCATTERED), judgement=None)
    _, commands = given(stuck, gate=DOUBTFUL)
    assert len(starts(commands)) == 1
    assert "what was measured of service gpt-oss could not be read" in commands[-1].get_raw_value()


def test_more_runs_must_fit_into_the_time_budget() -> None:
    tight = DOUBTFUL.model_copy(update={"time_budget_s": 60})
    first = with_result(PASSED, parts=parts(SCATTERED), judgement=None)
    _, commands = given(replace(PASSED, result=None), first, gate=tight)
    assert len(starts(commands)) == 1


def test_a_figure_that_could_not_be_taken_is_tried_once_more_and_then_fails() -> None:
    holed = with_result(PASSED, parts=parts(report(cell(None, [61.0] * 3))), judgement=None)
    again = with_result(holed, parts=holed.result.parts, judgement=None, finished="2026-11-30T04:46:19Z")  # type: ignore[union-attr]
    _, commands = given(replace(PASSED, result=None), holed, again)
    started = [measuring(one) for one in starts(commands)]
    assert [one["append"] for one in started] == [False, False]
    assert "not measured (the report has no value)" in commands[-1].get_raw_value()


def test_a_fault_fails_whatever_the_figures_say_and_names_itself() -> None:
    fault = {"kind": "cached-answers", "workload": "answers", "told": "copying: it repeats 'tamirobe-4821'"}
    _, commands = given(replace(PASSED, result=None), with_result(PASSED, faults=(fault,), judgement=None))
    assert len(starts(commands)) == 1
    text = commands[-1].get_raw_value()
    assert "FAIL  answers" in text
    assert "likely cause: cached answers (answers: copying: it repeats" in text


def test_it_is_held_to_the_last_good_release() -> None:
    relative = lab_gate(thresholds={"tg32@pp512 c1": {"last_good": {"fail": 0.05}}})
    good = replace(RESULT, release="r0", parts=parts(report(cell([1000.0] * 3, [61.0, 61.2, 61.1]))))
    slower = with_result(PASSED, parts=parts(report(cell([1000.0] * 3, [50.0, 50.2, 50.1]))), judgement=None)
    _, commands = given(replace(PASSED, result=None), replace(slower, reference=good), gate=relative)
    assert "18.0 % worse than the last good release" in commands[-1].get_raw_value()


def other(host: str, decode: float, **changes: Any) -> MeasuredService:
    service = PLAN.service
    return MeasuredService(
        host=host, service="gpt-oss", engine=service.engine, profile=service.profile, model=PLAN.model.served_as,
        port=8000, gpu=None, release="r9", verdict=Verdict.PASS, measured="2026-11-29T04:45:19Z", reasons=[],
        metrics={"tg32@pp512 c1": Figure(mean=decode, std=0.1, values=(decode,))},
    ).model_copy(update=changes)  # fmt: skip


@pytest.mark.parametrize(
    ("others", "verdict"),
    [
        ([other("a", 80.0), other("b", 80.4), other("c", 79.8)], "FAIL"),
        ([other("a", 61.0), other("b", 61.4), other("c", 60.8)], "PASS"),
        # Too few that are alike: of another engine, failed, from the controller, and this very host's own.
        (
            [
                other("a", 80.0), other("b", 80.4), other("c", 79.8, engine="vllm"),
                other("d", 80.0, verdict=Verdict.FAIL), other("spark-1", 80.0), other("e", 80.2, client="controller"),
            ],
            "PASS",
        ),
    ],
)  # fmt: skip
def test_it_is_held_to_the_median_of_the_fleets_other_hosts(
    monkeypatch: pytest.MonkeyPatch, others: list[MeasuredService], verdict: str
) -> None:
    known = Measured(services={f"{one.host}/gpt-oss": one for one in others})
    monkeypatch.setattr(gate_memory, "load_measured", lambda _: known)
    relative = lab_gate(thresholds={"tg32@pp512 c1": {"fleet": {"fail": 0.1}}})
    steady = with_result(PASSED, parts=parts(report(cell([1000.0] * 3, [61.0, 61.2, 61.1]))), judgement=None)
    _, commands = given(replace(PASSED, result=None), steady, gate=relative)
    judge = next(one for one in commands if "judge_release.py" in str(one))
    assert json.loads(judge.connector_arguments["_stdin"])["judgement"]["verdict"] == verdict


@pytest.mark.parametrize("driver", ["580.126.09", "580.95.05"])
def test_another_driver_and_who_asks_make_it_measure(driver: str) -> None:
    changed = driver != RESULT.versions["driver"]
    new = with_result(PASSED, judgement=None, finished="2026-11-30T05:45:19Z")
    host, commands = given(replace(PASSED, versions={"driver": driver}), new, asked=not changed)
    assert measuring(commands[0])["measure"] == {"benchy": 3}
    assert any(("driver 580.95.05 → 580.126.09" if changed else "asked to") in line for line in host.logged)


def test_a_dataset_that_the_host_lacks_is_brought_and_one_that_is_another_is_refused() -> None:
    everything = load_catalog().gates["lab-everything"]
    assert everything.sharegpt is not None
    dataset = everything.sharegpt.dataset.model_copy(update={"file": str(DATASETS / everything.sharegpt.dataset.file)})
    gate = everything.model_copy(update={"sharegpt": everything.sharegpt.model_copy(update={"dataset": dataset})})
    _, commands = given(replace(PASSED, result=None), replace(PASSED, result=None), gate=gate)
    assert [str(one)[:9] for one in commands[:1]] == ["mkdir -p "]
    assert isinstance(commands[1], FileUploadCommand)
    there = replace(PASSED, result=None, datasets=frozenset({dataset.sha256}))
    _, commands = given(there, there, gate=gate)
    assert measuring(commands[0])["measure"] == {"cold_start": 1, "answers": 1, "benchy": 3, "random": 3, "sharegpt": 1}
    wrong = dataset.model_copy(update={"sha256": "0" * 64})
    gate = gate.model_copy(update={"sharegpt": everything.sharegpt.model_copy(update={"dataset": wrong})})
    _, commands = given(replace(PASSED, result=None), gate=gate)
    assert "correct one of them" in commands[0].get_raw_value()


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
            "format": 2,
            "workload_id": "w",
            "release": "r1",
            "finished": "2026-11-30T04:45:19Z",
            "gpu": None,
            "samples": {},
            "parts": parts(GOOD),
            "report": json.loads(GOOD),
        },
    }
    state = ServiceGate().process([json.dumps(answer)])
    assert state is not None
    assert state.result is not None
    former = {**answer, "result": {**answer["result"], "format": 1}}  # type: ignore[dict-item]
    assert ServiceGate().process([json.dumps(former)]).result.workload_id == ""  # type: ignore[union-attr]
    assert (state.result.gpu, state.result.judgement) == (None, None)
    assert ServiceGate().process([json.dumps({**answer, "result": None})]).result is None  # type: ignore[union-attr]
