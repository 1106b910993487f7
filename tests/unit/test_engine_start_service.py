"""The start on the host: its outcome, the way back, what it tells."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from modules.hostside import start_service
from modules.hostside.ledger import Ledger
from modules.hostside.service_unit import FAILED, READY, UNDERWAY, milestone, start_outcome

ACTIVE = {"ActiveState": "active", "SubState": "running", "NRestarts": "0", "InvocationID": "i"}
STARTING = {"ActiveState": "activating", "SubState": "start-post", "NRestarts": "0", "InvocationID": "i"}
PAUSING = {"ActiveState": "activating", "SubState": "auto-restart", "NRestarts": "0", "InvocationID": "i"}


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


class Machine:
    """Systemd for one unit: a start of a release in `sound` gets ready, another one fails."""

    def __init__(self, ledger: Ledger, sound: set[str]) -> None:
        self.ledger = ledger
        self.sound = sound
        self.refused: set[str] = set()
        self.commands: list[tuple[str, ...]] = []
        self.state = ACTIVE

    def systemctl(self, *words: str) -> bool:
        self.commands.append(words)
        if words[0] != "restart":
            return True
        if self.ledger.linked("current") in self.refused:
            return False
        self.state = ACTIVE if self.ledger.linked("current") in self.sound else PAUSING
        return True


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """A ledger with releases `old` and `new`, the new one in force."""
    monkeypatch.setattr(Ledger, "put_in_force", put_in_force)
    ledger = Ledger("gpt-oss", tmp_path)
    for release in ("old", "new"):
        ledger.record(release, {}, [])
        ledger.put_in_force(release, [])
    return ledger


def put_in_force(self: Ledger, release: str, _files: object) -> None:
    (self.directory / "current").unlink(missing_ok=True)
    (self.directory / "current").symlink_to(f"{release}.json")


def run(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, sound: set[str], *options: str, refused: bool = False
) -> tuple[int, Machine]:
    machine = Machine(ledger, sound)
    machine.refused = {"new"} - sound if refused else set()
    root = ledger.directory.parents[1]
    monkeypatch.setattr(start_service, "Ledger", lambda service: Ledger(service, root))
    monkeypatch.setattr(
        start_service, "restore", lambda service, release: put_in_force(Ledger(service, root), release, [])
    )
    monkeypatch.setattr(start_service, "systemctl", machine.systemctl)
    monkeypatch.setattr(start_service, "unit_state", lambda _: machine.state)
    monkeypatch.setattr(
        start_service, "journal", lambda *_: ["Error: No such container: tinderbox-gpt-oss", "it broke"]
    )
    monkeypatch.setattr(sys, "argv", ["start_service.py", "gpt-oss", "new", *options])
    return start_service.main(), machine


def events(ledger: Ledger, release: str) -> list[str]:
    return [event["event"] for event in (ledger.entry(release) or {})["events"]]


def test_a_ready_release_is_noted_and_left_for_its_gate(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    code, machine = run(ledger, monkeypatch, {"new"}, "--fallback", "old")
    assert code == 0
    assert [words[0] for words in machine.commands] == ["reset-failed", "restart"]
    assert events(ledger, "new") == ["installed", "ready"]
    assert ledger.linked("last-good") is None


def test_without_a_gate_ready_is_good(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(ledger, monkeypatch, {"new"}, "--ungated")[0] == 0
    assert ledger.linked("last-good") == "new"


def test_a_release_that_fails_makes_way_for_the_one_before(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, machine = run(ledger, monkeypatch, {"old"}, "--fallback", "old")
    assert code == 1
    assert ledger.linked("current") == "old"
    assert machine.state == ACTIVE
    told = capsys.readouterr().out
    assert "it broke" in told
    assert "No such container" not in told
    assert "release new did not get ready; release old serves again" in told
    assert events(ledger, "new")[-1] == "failed to start"
    assert ledger.failure_log("new").read_text() == "it broke\n"


def test_without_an_earlier_release_the_service_is_stopped(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, machine = run(ledger, monkeypatch, set())
    assert code == 1
    assert machine.commands[-1][0] == "stop"
    assert "the service is down" in capsys.readouterr().out


def test_an_earlier_release_that_fails_too_is_told(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(ledger, monkeypatch, set(), "--fallback", "old")[0] == 1
    assert "release old does not start any more either" in capsys.readouterr().out


def test_a_start_under_way_is_not_started_again(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    code, machine = run(ledger, monkeypatch, {"new"}, "--attach")
    assert (code, machine.commands) == (0, [])


def test_a_unit_that_systemd_refuses_is_not_taken_for_the_one_that_still_runs(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, machine = run(ledger, monkeypatch, {"old"}, "--fallback", "old", refused=True)
    assert (code, machine.state) == (1, ACTIVE)
    assert ledger.linked("current") == "old"
    assert "ready" not in events(ledger, "new")
