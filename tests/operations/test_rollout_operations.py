"""What the operations of a rollout ask a host, tell of it, and give it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyinfra.api import StringCommand
from pyinfra.context import ctx_host

from modules.facts.files import FileState, FileStates
from modules.facts.gate import GateResult, GateState, ServiceGate
from modules.facts.releases import HostReleases, ServiceReleases
from modules.facts.service import Barred, ServiceRelease, ServiceState, UnitState
from modules.fleet import Fleet, HostPlan
from modules.gating.identity import thresholds_id, workload_id
from modules.images.reference import image_reference
from modules.operations import engine, rollout, weights
from modules.operations.rollout import RECORD, release_surveyed, rollout_noted, service_soaked, turn_taken
from modules.operations.start_job import start_job
from modules.operations.turns import restart_waits
from modules.release.build import build_release
from modules.release.files import release_files
from modules.rollout import survey
from modules.rollout.record import RECORD_FILE, RolloutRecord
from modules.rollout.survey import SURVEY_FILE, Surveyed, note, surveyed_here
from modules.spec.lock import Lock
from modules.spec.settings import HostSettings
from modules.spec.strategy import Strategy
from tests.operations.stub_host import StubHost, commands_of
from tests.unit.release_samples import HOME, service_plan, surroundings

PLAN = service_plan(gate="lab-cpu")
GATE = PLAN.gate
assert GATE is not None
IMAGE = image_reference(PLAN.recipe, Lock())
COMMIT = PLAN.model.revision
RELEASE = build_release(PLAN, surroundings(image=IMAGE, commit=COMMIT))
UNIT = UnitState(active="active", sub="running", enabled=True, stale=False, job=False)
SERVING = ServiceState(
    systemd=255,
    unit=UNIT,
    files={file.path: file.sha256 for file in release_files(RELEASE, {})},
    current=RELEASE.id,
    last_good=RELEASE.id,
    image="sha256:1",
    container_release=RELEASE.id,
    commit=COMMIT,
    model_is_here=True,
    missing_encodings=(),
)
JUDGED = {"verdict": "PASS", "thresholds": thresholds_id(GATE), "lines": []}
MEASURED = GateResult(
    workload_id(GATE, PLAN.answers), RELEASE.id, "2026-11-30T12:00:00Z", 60.0, "NVIDIA GB10", {}, {}, (), 60.0, JUDGED
)
PASSED = GateState(RELEASE.id, RELEASE.id, COMMIT, UNIT, MEASURED)
RELEASES = ServiceReleases(
    active="active", enabled=True, current=RELEASE.id, last_good=RELEASE.id, pending=None, releases={},
    invocation="1", proved_s=700.0,
)  # fmt: skip


@pytest.fixture(autouse=True)
def _fleet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    office = Fleet(name="office", path=tmp_path / "fleet.yaml", hosts={})
    for module in (engine, rollout, weights):
        monkeypatch.setattr(module, "load_fleet", lambda: office)
    monkeypatch.setattr(survey, "_here", {})
    monkeypatch.setattr(rollout, "_is_prepared", lambda: False)
    for name in (SURVEY_FILE, RECORD_FILE, "TINDERBOX_ROLLOUT", "TINDERBOX_FORCE"):
        monkeypatch.delenv(name, raising=False)


def asked(state: ServiceState | None, gate: GateState | None = PASSED, seen: Any = RELEASES) -> Surveyed:
    host = StubHost({ServiceRelease: state, ServiceGate: gate, HostReleases: {PLAN.name: seen}})
    services = HostPlan("spark-1", HostSettings.model_validate({"weights": {"home": HOME}}), (PLAN,))
    assert commands_of(host, release_surveyed, plan=PLAN, services=services) == []
    ((found,),) = (one.parts for one in surveyed_here())
    return found


def test_a_host_that_serves_what_it_should_and_has_passed_needs_no_turn() -> None:
    found = asked(SERVING)
    assert (found.turn, found.barred, found.proved_s) == ("", "", 700.0)
    assert (found.wanted, found.wish, found.current) == (RELEASE.id, RELEASE.id, RELEASE.id)


@pytest.mark.parametrize(
    ("state", "gate", "why"),
    [
        (replace(SERVING, current="former", container_release="former"), PASSED, f"release former → {RELEASE.id}"),
        (replace(SERVING, unit=replace(UNIT, active="failed", sub="failed")), PASSED, "is started"),
        (replace(SERVING, unit=replace(UNIT, enabled=False)), PASSED, "as its files should be"),
        (
            replace(SERVING, versions={"driver": "2"}, proved_on={"driver": "1"}, started_on={"driver": "1"}),
            PASSED,
            "restarted: driver 1 → 2",
        ),
        (SERVING, replace(PASSED, result=None), "its gate is open"),
        (SERVING, replace(PASSED, result=replace(MEASURED, workload_id="another")), "the workload is another one"),
        (
            SERVING,
            replace(PASSED, result=replace(MEASURED, judgement={**JUDGED, "thresholds": "others"})),
            "its gate has other thresholds",
        ),
        (SERVING, replace(PASSED, last_good="former"), "it was not found good yet"),
    ],
)
def test_what_needs_a_turn_is_told_with_its_reason(state: ServiceState, gate: GateState, why: str) -> None:
    assert why in asked(state, gate).turn


def test_what_is_not_tried_again_needs_no_turn_unless_that_is_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = {RELEASE.id: Barred("gate failed", "noon", "too slow")}
    state = replace(SERVING, current="former", last_good="former", container_release="former", barred=bad)
    former = replace(RELEASES, current="former")
    found = asked(state, seen=former)
    assert (found.turn, found.barred, found.proved_s) == ("", "gate failed at noon: too slow", None)
    monkeypatch.setenv("TINDERBOX_FORCE", "1")
    again = asked(state, seen=former)
    assert (again.turn, again.barred) == (f"release former → {RELEASE.id}", "")


def test_keys_that_hosts_made_themselves_make_no_difference_between_hosts() -> None:
    plan = service_plan(gate="lab-cpu", listen="0.0.0.0")
    services = HostPlan("spark-1", HostSettings.model_validate({"weights": {"home": HOME}}), (plan,))
    found = {}
    for key in ("a", "b"):
        state = replace(SERVING, current="former", made_key=key)
        host = StubHost({ServiceRelease: state, ServiceGate: PASSED, HostReleases: {}})
        commands_of(host, release_surveyed, plan=plan, services=services)
        found[key] = surveyed_here()[0].parts[0]
    assert found["a"].wanted != found["b"].wanted
    assert found["a"].wish == found["b"].wish


def taken(names: int, going: int, monkeypatch: pytest.MonkeyPatch, **keys: Any) -> tuple[list[Any], StubHost]:
    inventory = [SimpleNamespace(name=f"spark-{number}") for number in range(1, names + 1)]
    state = SimpleNamespace(inventory=inventory, is_host_in_limit=lambda _: True)
    hosts = {one.name: None for one in inventory}
    monkeypatch.setattr(rollout, "state", state)
    monkeypatch.setattr(rollout, "load_fleet", lambda: SimpleNamespace(hosts=hosts))
    for one in inventory[:going]:
        note(Surveyed(one.name, "gpt", "a", "a", "b", turn="release b → a"))
    host = StubHost({})
    return commands_of(host, turn_taken, strategy=Strategy.model_validate(keys)), host


def test_pyinfra_alone_changes_no_more_hosts_than_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    commands, _ = taken(4, 2, monkeypatch, batch="25%")
    assert "2 hosts would have their turn at once (spark-1, spark-2)" in str(commands[0])
    assert "lets 1: nothing was stopped here" in str(commands[0])
    assert "python -m modules.converge" in str(commands[0])


def test_pyinfra_alone_may_change_one_batch_and_hosts_with_nothing_to_change(monkeypatch: pytest.MonkeyPatch) -> None:
    commands, host = taken(4, 2, monkeypatch, batch=2)
    assert (commands, len(host.noops)) == ([], 1)
    monkeypatch.setattr(survey, "_here", {})
    assert taken(4, 0, monkeypatch)[0] == []


def soaked(monkeypatch: pytest.MonkeyPatch, *looks: ServiceReleases | None, seconds: float = 600.0) -> tuple[Any, ...]:
    slept: list[float] = []
    monkeypatch.setattr(rollout, "time", SimpleNamespace(
        sleep=slept.append, time=lambda: 0.0, strftime=lambda *_: "", localtime=lambda _: None,
        monotonic=lambda: sum(slept),
    ))  # fmt: skip
    host = StubHost({HostReleases: [None if one is None else {PLAN.name: one} for one in looks]})
    return commands_of(host, service_soaked, plan=PLAN, seconds=seconds), host, slept


def young(seconds: float, **changes: Any) -> ServiceReleases:
    return replace(RELEASES, proved_s=seconds, **changes)


def test_a_canary_is_watched_until_it_has_served_for_long_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    commands, host, slept = soaked(monkeypatch, young(580.0), young(595.0), None, young(601.0))
    assert commands == []
    assert "has served release" in host.noops[0]
    assert len(slept) == 3


def test_a_host_whose_clock_was_set_back_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    commands, host, slept = soaked(monkeypatch, *[young(0.0)] * 1000)
    assert commands == []
    assert 600 <= sum(slept) < 660
    assert "has served release" in host.noops[0]


def test_one_that_has_served_for_so_long_already_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert soaked(monkeypatch, RELEASES)[2] == []


@pytest.mark.parametrize(
    ("look", "why"),
    [
        (young(5.0, invocation="2"), "its server was started again"),
        (young(5.0, active="failed"), "its unit is failed"),
        (young(5.0, current="former"), "release former is in force"),
        (replace(RELEASES, proved_s=None), "is not the last good one"),
        (young(5.0, closed=True), "it takes no requests of its gateways"),
    ],
)
def test_a_canary_that_does_not_last_fails_and_that_is_told(
    monkeypatch: pytest.MonkeyPatch, look: ServiceReleases, why: str
) -> None:
    commands, _, _ = soaked(monkeypatch, young(1.0), look)
    assert why in str(commands[0])
    assert why in surveyed_here()[0].parts[0].barred


def test_a_canary_that_does_not_answer_any_more_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    commands, _, _ = soaked(monkeypatch, young(1.0), None, None, None)
    assert "could not be read" in str(commands[0])
    # Nothing is known of its server, so nothing is rolled back.
    assert surveyed_here() == []


def test_the_record_is_placed_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert commands_of(StubHost({}), rollout_noted) == []
    record = RolloutRecord(id="5f3a1c2b", begun="2026-11-30T12:00:00Z", held=("spark-2",))
    path = tmp_path / "record.json"
    path.write_text(record.text())
    monkeypatch.setenv(RECORD_FILE, str(path))
    (command,) = commands_of(StubHost({FileStates: {RECORD: None}}), rollout_noted)
    assert isinstance(command, StringCommand)
    assert json.loads(str(command.connector_arguments["_stdin"]))["held"] == ["spark-2"]
    there = FileState(hashlib.sha256(record.text().encode()).hexdigest(), "644", "root:root")
    assert commands_of(StubHost({FileStates: {RECORD: there}}), rollout_noted) == []


def test_the_start_tells_the_ledger_of_its_rollout(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "--rollout" not in start_job(PLAN, "r1").command
    monkeypatch.setenv("TINDERBOX_ROLLOUT", "5f3a1c2b: batch 2 of 5")
    assert "5f3a1c2b: batch 2 of 5" in start_job(PLAN, "r1").command


def test_a_restart_of_dockerd_waits_for_the_hosts_turn_where_something_serves(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def waits(active: str) -> bool:
        host = StubHost({HostReleases: {PLAN.name: replace(RELEASES, active=active)}})
        with ctx_host.use(host):
            return restart_waits("dockerd is restarted: its settings change")

    assert not waits("active")
    monkeypatch.setenv(SURVEY_FILE, str(tmp_path / "survey"))
    assert not waits("failed")
    assert waits("active")
    assert surveyed_here()[0].turn == "dockerd is restarted: its settings change"
    # In its turn it is done.
    monkeypatch.setenv("TINDERBOX_ROLLOUT", "5f3a1c2b: canary")
    assert not waits("active")
