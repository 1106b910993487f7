"""The start on the host: its outcome, the way back, what it tells."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from modules.hostside import service_server, service_unit, start_service
from modules.hostside.activation import Pending, write_pending
from modules.hostside.ledger import Ledger, stage
from modules.hostside.release_story import standing
from modules.hostside.service_unit import FAILED, READY, UNDERWAY, milestone, start_outcome, why_not_ready
from tests.unit.fake_systemd import ACTIVE, INACTIVE, PAUSING, STARTING, Machine, machines

Make = Callable[..., Machine]


@pytest.mark.parametrize(
    ("unit", "outcome"),
    [
        (ACTIVE, READY),
        # The stop of the former server and the start are one job, and not begun yet.
        (ACTIVE | {"Job": "71"}, UNDERWAY),
        (STARTING, UNDERWAY),
        ({"ActiveState": "deactivating", "SubState": "stop-sigterm", "Job": "71"}, UNDERWAY),
        (PAUSING, FAILED),
        ({"ActiveState": "failed", "SubState": "failed", "Job": ""}, FAILED),
        ({"ActiveState": "inactive", "SubState": "dead", "Job": "0"}, FAILED),
        (STARTING | {"NRestarts": "1"}, FAILED),
        ({}, FAILED),
    ],
)
def test_outcome_of_a_start(unit: dict[str, str], outcome: str) -> None:
    assert start_outcome(unit) == outcome


def test_restarts_from_before_do_not_count() -> None:
    assert start_outcome(STARTING | {"NRestarts": "1"}, restarts_before=1) == UNDERWAY
    assert start_outcome(STARTING | {"NRestarts": "2"}, restarts_before=1) == FAILED


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("Loading safetensors checkpoint shards:  33% Completed | 1/3 [00:00<00:00]", "loading weights 33%"),
        (
            "(Worker pid=37) INFO [default_loader.py:501] Loading weights took 0.14 seconds",
            "weights loaded (0.14 seconds)",
        ),
        ("INFO [kv_cache_utils.py] GPU KV cache size: 2,064,888 tokens", "KV cache 2,064,888 tokens"),
        ("Capturing CUDA graphs (decode):  50%|#####  | 18/36", "capturing CUDA graphs 50%"),
        ("INFO:     Application startup complete.", "waiting for a reply"),
        ("The server is fired up and ready to roll!", "waiting for a reply"),
        ("await-ready: ready after 5 s: 'hello'", "ready after 5 s: 'hello'"),
        ("WARNING nothing that we know", None),
    ],
)
def test_milestones(line: str, told: str | None) -> None:
    assert milestone([line]) == told


def test_the_newest_milestone_counts() -> None:
    assert milestone(["Loading weights took 3 seconds", "noise", "Application startup complete", "noise"]) == (
        "waiting for a reply"
    )


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("await-ready: not ready after 61 s: the server has ended", "the server has ended"),
        (
            "memory-gate: refused: 9.0 GiB are needed, 1.0 GiB available",
            "refused: 9.0 GiB are needed, 1.0 GiB available",
        ),
        ("nothing that we know", "its unit is failed (exit-code)"),
    ],
)
def test_why_a_start_failed_in_one_line(line: str, told: str) -> None:
    found = why_not_ready(["noise", line, "noise"], {"ActiveState": "failed", "Result": "exit-code"})
    assert found.startswith(told)


def test_what_the_load_guard_did_is_told_before_what_others_saw_of_it() -> None:
    lines = ["load-guard: stopped the engine: it was loading", "await-ready: not ready after 9 s: the server has ended"]
    assert why_not_ready(lines, {}) == "stopped the engine: it was loading"


@pytest.fixture
def machine_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Make:
    return machines(monkeypatch, tmp_path)


def events(machine: Machine, release: str) -> list[dict[str, Any]]:
    return list((machine.ledger.entry(release) or {})["events"])


def names(machine: Machine, release: str) -> list[str]:
    return [event["event"] for event in events(machine, release)]


def staged(machine: Machine, *releases: str) -> Machine:
    for release in releases:
        stage(machine.request(release), machine.root)
    return machine


def test_a_ready_release_is_noted_and_left_for_its_gate(machine_of: Make) -> None:
    machine = staged(machine_of({"new"}), "new")
    assert machine.program("new", "--by", "me@here", "--rollout", "5f3a1c2b: canary") == 0
    assert names(machine, "new") == ["activated", "ready"]
    assert events(machine, "new")[0]["by"] == "me@here"
    assert events(machine, "new")[0]["rollout"] == "5f3a1c2b: canary"
    assert machine.ledger.linked("last-good") is None
    assert machine.seen().pending is not None


def test_without_a_gate_ready_is_good(machine_of: Make) -> None:
    machine = staged(machine_of({"new"}), "new")
    machine.gated = False
    assert machine.program("new") == 0
    assert (machine.ledger.linked("last-good"), machine.seen().pending) == ("new", None)


def test_a_release_that_fails_makes_way_for_the_last_good_one(
    machine_of: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = machine_of({"old"})
    machine.run("old")
    staged(machine, "new")
    assert machine.program("new") == 1
    assert (machine.engine, machine.state, machine.ledger.linked("current")) == ("old", ACTIVE, "old")
    told = capsys.readouterr().out
    assert "release new did not get ready: it broke; release old serves again" in told
    assert names(machine, "new") == ["activated", "failed to start", "rolled back"]
    assert events(machine, "new")[1]["note"] == "it broke"
    assert names(machine, "old")[-1] == "restored"
    assert machine.ledger.failure_log("new").read_text() == "await-ready: not ready after 3 s: it broke\n"


def test_a_failure_is_told_by_its_cause_and_what_was_logged_before_it(
    machine_of: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log = ["loading", "out of order", "await-ready: not ready after 3 s: it broke", "Shutting down", "Finished."]
    monkeypatch.setattr(service_server, "journal", lambda *_: log)
    monkeypatch.setenv("TINDERBOX_JOB_DIR", str(tmp_path))
    machine = machine_of({"old"})
    machine.run("old")
    staged(machine, "new")
    steps: list[str] = []
    monkeypatch.setattr(start_service, "Progress", lambda: SimpleNamespace(report=steps.append))

    assert machine.program("new") == 1

    told = json.loads((tmp_path / "result.json").read_text())["failed"]
    assert told["cause"] == "release new did not get ready: it broke; release old serves again"
    assert told["lines"] == ["loading", "out of order"]
    back = "release new did not get ready; bringing back old"
    assert steps[steps.index(back) :][:2] == [back, f"{back}: stopping the server that ran"]
    assert all(step.startswith(back) for step in steps[steps.index(back) :])


@pytest.mark.parametrize(("lines", "left"), [
    (["a", "b"], ["a", "b"]),
    (["a", "await-ready: not ready after 9 s: gone", "b"], ["a"]),
    (["memory-gate: refused: 9 GiB", "memory-gate:   python (pid 3)", "b"], ["memory-gate:   python (pid 3)"]),
])  # fmt: skip
def test_what_an_engine_logs_after_it_has_failed_is_left_out(lines: list[str], left: list[str]) -> None:
    assert service_unit.until_failed(lines) == left


def test_a_start_that_has_failed_is_ended_in_a_hurry_and_a_stop_is_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def followed(*states: str) -> list[list[str]]:
        ended: list[list[str]] = []
        left = list(states)
        monkeypatch.setattr(
            service_server, "unit_state", lambda _: {"ActiveState": left.pop(0), "SubState": "x", "NRestarts": "0"}
        )
        monkeypatch.setattr(service_server, "journal", lambda *_: [])
        monkeypatch.setattr(subprocess, "run", lambda words, **_: ended.append(words))
        server = service_server.Server(Ledger("svc", tmp_path), "tinderbox-svc.service", lambda _: None, lambda _: None)
        assert server.follow(0) == "failed"
        return ended

    hurried = followed("activating", "deactivating", "deactivating", "failed")
    assert hurried == [["docker", "stop", "--time", "15", "tinderbox-svc"]]
    assert followed("deactivating", "deactivating", "failed") == []


def test_it_is_not_tried_again_unless_forced(machine_of: Make, capsys: pytest.CaptureFixture[str]) -> None:
    machine = machine_of({"old"})
    machine.run("old")
    assert machine.run("new") == 1
    machine.effects = 0
    assert machine.program("new") == 1
    assert "release new is not tried again: failed to start at" in capsys.readouterr().out
    # Not a word to systemd, nothing written.
    assert (machine.effects, machine.engine) == (0, "old")
    machine.sound.add("new")
    assert machine.program("new", "--forced") == 0
    assert (machine.engine, standing(machine.ledger.entry("new"))) == ("new", "ready")


def test_without_an_earlier_release_the_service_is_stopped_and_the_boot_leaves_it_alone(
    machine_of: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = staged(machine_of(set()), "new")
    assert machine.program("new") == 1
    assert (machine.state, machine.enabled) == (INACTIVE, False)
    assert "there is no earlier release to go back to: the service is down" in capsys.readouterr().out


def test_the_last_good_release_may_fail_and_is_tried_again(machine_of: Make) -> None:
    machine = machine_of({"old"})
    machine.run("old")
    machine.sound.clear()
    machine.state, machine.engine = INACTIVE, None
    assert machine.run("old") == 1
    assert machine.enabled
    machine.sound.add("old")
    assert machine.run("old") == 0
    assert machine.engine == "old"


def test_an_earlier_release_that_fails_too_is_told_and_tried_again_by_the_next_run(
    machine_of: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = machine_of({"old"})
    machine.run("old")
    machine.sound.clear()
    assert machine.run("new") == 1
    assert "release old does not get ready any more either (it broke): the service is down" in capsys.readouterr().out
    machine.sound.add("old")
    assert machine.run("new") == 1
    assert "release new: failed to start: it broke; release old serves again" in capsys.readouterr().out
    assert (machine.engine, machine.seen().pending) == ("old", None)


def test_a_start_under_way_is_not_started_again(machine_of: Make) -> None:
    machine = machine_of({"new"})
    machine.run("new")
    machine.state = STARTING
    machine.effects = 0
    assert machine.program("new", "--attach") == 0
    assert machine.wrong == []
    assert machine.engine == "new"
    # The note of what is under way comes and goes; systemd is told nothing.
    assert machine.effects == 2


def test_a_crash_before_does_not_count_against_what_serves(machine_of: Make) -> None:
    machine = machine_of({"old"})
    machine.run("old")
    machine.state = ACTIVE | {"NRestarts": "2"}
    assert machine.run("new") == 1
    assert machine.engine == "old"


def test_a_server_that_can_not_be_stopped_is_left_and_is_no_second_one(
    machine_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = machine_of({"old", "new"})
    machine.run("old")
    whole = machine.systemctl

    def stubborn(*words: str) -> bool:
        return words[0] != "stop" and whole(*words)

    monkeypatch.setattr(machine, "systemctl", stubborn)
    assert machine.run("new") == 1
    assert (machine.engine, machine.ledger.linked("current"), machine.wrong) == ("old", "old", [])
    assert events(machine, "new")[1]["note"] == "the server that ran could not be stopped"


def test_a_unit_that_systemd_refuses_makes_way(machine_of: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = machine_of({"old", "new"})
    machine.run("old")
    whole = machine.systemctl

    def refusing(*words: str) -> bool:
        return not (words[0] == "start" and machine.ledger.linked("current") == "new") and whole(*words)

    monkeypatch.setattr(machine, "systemctl", refusing)
    assert machine.run("new") == 1
    assert machine.engine == "old"
    assert events(machine, "new")[1]["note"] == "systemd refused to start its unit"


def test_a_rollback_withdraws_the_release_before(machine_of: Make) -> None:
    machine = machine_of({"old", "new"})
    machine.run("old")
    machine.run("new")
    assert machine.program("old", "--instead", "new", "--by", "me@here") == 0
    assert (machine.engine, machine.ledger.linked("last-good")) == ("old", "old")
    assert machine.run("new") == 1
    assert machine.engine == "old"
    (withdrawn,) = [event for event in events(machine, "new") if event["event"] == "withdrawn"]
    assert (withdrawn["by"], withdrawn["note"]) == ("me@here", "rolled back in favour of old")


def test_a_rollback_that_fails_leaves_what_served(machine_of: Make) -> None:
    machine = machine_of({"old", "new"})
    machine.run("old")
    machine.run("new")
    machine.sound.remove("old")
    assert machine.program("old", "--instead", "new") == 1
    assert (machine.engine, machine.ledger.linked("last-good")) == ("new", "new")
    assert machine.run("new") == 0


def test_what_a_failed_gate_would_go_back_to_must_be_on_the_host(
    machine_of: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = machine_of({"old", "slow"}, {"slow"})
    machine.run("old")
    machine.has_image = False
    assert machine.run("slow") == 1
    assert machine.engine == "slow"
    assert "release old lacks its image i: it goes on serving" in capsys.readouterr().out


@pytest.mark.parametrize(("release", "serves"), [("good", ()), ("bad", ("former",))])
def test_a_service_that_the_fleet_file_has_no_more_makes_way_and_is_back_where_that_was_in_vain(
    machine_of: Make,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    release: str,
    serves: tuple[str, ...],
) -> None:
    machine = staged(machine_of({"good"}), release)
    running = {"former"}

    def back(_: object, others: tuple[str, ...]) -> list[str]:
        running.update(others)
        return list(others)

    # As release_switch.py has them.
    for name, act in {
        "in_the_way": lambda _: tuple(running),
        "make_way": lambda _, others: running.difference_update(others),
        "have_back": back,
    }.items():
        monkeypatch.setattr(f"release_switch.{name}", act)
    assert machine.program(release) == (1 if serves else 0)
    assert tuple(running) == serves
    told = capsys.readouterr().out
    assert ("former, which had made way for it, serves again" in told) == bool(serves)


def test_who_made_way_is_known_over_a_cut(machine_of: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = staged(machine_of(set()), "bad")
    write_pending(machine.ledger, Pending("bad", aside=("former",)))
    asked: list[tuple[str, ...]] = []

    def nothing_back(_: object, others: tuple[str, ...]) -> list[str]:
        asked.append(others)
        return []

    monkeypatch.setattr("release_switch.have_back", nothing_back)
    assert machine.program("bad") == 1
    assert asked == [("former",)]
