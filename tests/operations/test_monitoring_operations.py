"""What a host gets to be watched, and that one that has it gets nothing."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

from modules.facts.files import FileState
from modules.facts.monitoring import PROGRAM, Monitoring, MonitoringState
from modules.monitoring.plan import WatchPlan
from modules.operations.monitoring import managed, watched
from tests.operations.stub_host import StubHost, commands_of

UNIT, SECRET = "/etc/systemd/system/tinderbox-exporter.service", "/etc/tinderbox/grafana.secret.env"
PLAN = WatchPlan(
    files={UNIT: "[Service]\n", SECRET: "P=hush\n", "/etc/gone": None},
    secret_files=frozenset({SECRET}),
    configuration={"prometheus.yml": "global: {}\n"},
    running=("tinderbox-exporter", "prometheus"),
)


def settled(plan: WatchPlan) -> MonitoringState:
    found: dict[str, FileState | None] = {}
    for file in managed(plan):
        digest = hashlib.sha256((file.content or "").encode()).hexdigest()
        found[file.path] = None if file.content is None else FileState(digest, file.mode, "root:root")
    return MonitoringState(found)


def given(state: MonitoringState | None, plan: WatchPlan = PLAN) -> tuple[StubHost, list[Any]]:
    host = StubHost({Monitoring: state})
    return host, commands_of(host, watched, plan=plan)


def test_a_host_that_is_as_wished_gets_nothing_and_is_asked_once() -> None:
    host, commands = given(settled(PLAN))
    assert commands == []
    assert host.noops
    assert [fact for fact, _ in host.asked] == [Monitoring]
    # The whole configuration may be longer than what a command may be.
    assert "files" not in json.dumps(host.asked[0][1]["wish"])


def test_a_bare_host_gets_files_before_packages_and_last_what_they_are_for() -> None:
    bare = MonitoringState(dict.fromkeys(PLAN.files), missing=("prometheus",))
    _, (unit, secret, install, *_, apply) = given(bare)
    assert unit.get_raw_value().split()[-2:] == [UNIT, "644"]
    assert secret.get_raw_value().split()[-2:] == [SECRET, "600"]
    assert "hush" not in secret.get_raw_value()
    assert "install_package.py" in install.get_raw_value()
    assert apply.get_raw_value() == f"/usr/bin/python3 {PROGRAM} apply"
    assert json.loads(apply.connector_arguments["_stdin"])["prometheus"]["files"] == PLAN.configuration


def test_what_was_there_before_is_left_alone_and_told() -> None:
    _, (refusal,) = given(MonitoringState(dict.fromkeys(PLAN.files), foreign=("prometheus",), missing=("x",)))
    said = refusal.get_raw_value()
    assert "spark-1: prometheus was on this host before Tinderbox" in said
    assert "existing_prometheus: true" in said
    assert "Nothing was changed" in said


def test_a_run_that_was_cut_after_the_files_is_finished() -> None:
    _, (apply,) = given(replace(settled(PLAN), differences=("prometheus.service does not run",)))
    assert apply.get_raw_value().endswith("apply")


def test_taking_the_key_out_takes_the_files_away_and_applies_nothing_wished() -> None:
    gone = WatchPlan(files=dict.fromkeys(PLAN.files))
    _, (*files, apply) = given(settled(PLAN), gone)
    assert len(files) == 2
    assert all(" take-away " in file.get_raw_value() for file in files)
    wish = json.loads(apply.connector_arguments["_stdin"])
    assert (wish["exporter"], wish["node_exporter"], wish["prometheus"]) == (False, False, None)


def test_a_host_that_gives_no_answer_is_refused() -> None:
    _, (refusal,) = given(None)
    assert "watches this host could not be read" in refusal.get_raw_value()


def test_the_fact_reads_what_the_program_and_the_files_say() -> None:
    told = json.dumps({"differences": ["it differs"], "missing": [], "foreign": ["prometheus"]})
    state = Monitoring().process([told, "absent - - /etc/a b"])
    assert state == MonitoringState({"/etc/a b": None}, ("it differs",), (), ("prometheus",))
    command = Monitoring().command(paths=["/etc/a b"], wish={"exporter": True}).get_raw_value()
    assert command.startswith(f"! test -e {PROGRAM} || {{ printf %s '{{\"exporter\": true}}' | ")
