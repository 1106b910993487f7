"""The ledger on a host."""

from __future__ import annotations

import json
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from modules.hostside import ledger as ledger_program
from modules.hostside import start_container
from modules.hostside.activation import Pending, read_pending, write_pending
from modules.hostside.judge_release import judge
from modules.hostside.ledger import Ledger, stage
from modules.hostside.release_story import standing, was_good


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What systemctl is asked."""
    seen: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda command, **_: seen.append(command))
    # No engine runs.
    monkeypatch.setattr("gpus_kept.run", lambda *_: None)
    return seen


def request(tmp_path: Path, release: str = "r1") -> dict[str, Any]:
    return {
        "service": "gpt-oss",
        "id": release,
        "release": {"image": release},
        "files": [
            {"path": str(tmp_path / "etc/unit"), "content": f"unit of {release}\n", "secret": False},
            {"path": str(tmp_path / "etc/secret.env"), "content": "KEY=hidden\n", "secret": True},
        ],
        "caches": ["vllm"],
    }


def in_force(tmp_path: Path, release: str = "r1", *events: str) -> Ledger:
    stage(request(tmp_path, release), tmp_path)
    ledger = Ledger("gpt-oss", tmp_path)
    ledger.put_in_force(release)
    for event in events:
        ledger.mark(release, event)
    return ledger


def test_staging_touches_nothing_that_is_in_force(tmp_path: Path, commands: list[list[str]]) -> None:
    in_force(tmp_path, "r1")
    commands.clear()
    stage(request(tmp_path, "r2"), tmp_path)
    assert (tmp_path / "etc/unit").read_text() == "unit of r1\n"
    assert Ledger("gpt-oss", tmp_path).linked("current") == "r1"
    assert stat.S_IMODE((tmp_path / "etc/secret.env.r2").stat().st_mode) == 0o600
    assert commands == []


def test_secrets_that_were_staged_in_vain_go(tmp_path: Path) -> None:
    stage(request(tmp_path, "r2"), tmp_path)
    stage(request(tmp_path, "r3"), tmp_path)
    assert [path.name for path in (tmp_path / "etc").iterdir()] == ["secret.env.r3"]


def test_what_is_put_in_force_is_whole(tmp_path: Path, commands: list[list[str]]) -> None:
    in_force(tmp_path)
    assert (tmp_path / "etc/unit").read_text() == "unit of r1\n"
    assert (tmp_path / "etc/secret.env").read_text() == "KEY=hidden\n"
    assert stat.S_IMODE((tmp_path / "etc/secret.env").stat().st_mode) == 0o600
    assert sorted(path.name for path in (tmp_path / "etc").iterdir()) == ["secret.env", "unit"]
    assert Ledger("gpt-oss", tmp_path).linked("current") == "r1"
    assert [words[1] for words in commands] == ["daemon-reload", "enable"]


def test_no_secret_enters_the_ledger(tmp_path: Path, commands: list[list[str]]) -> None:
    in_force(tmp_path)
    assert commands
    assert "hidden" not in "".join(path.read_text() for path in (tmp_path / "ledger").rglob("*.json"))


def test_an_earlier_release_comes_back_and_secrets_stay(tmp_path: Path, commands: list[list[str]]) -> None:
    in_force(tmp_path, "r1")
    in_force(tmp_path, "r2").put_in_force("r1")
    assert (tmp_path / "etc/unit").read_text() == "unit of r1\n"
    assert (tmp_path / "etc/secret.env").read_text() == "KEY=hidden\n"
    assert Ledger("gpt-oss", tmp_path).linked("current") == "r1"
    assert len(commands) == 6


def test_a_good_release_without_secrets_ends_those_of_the_one_before(
    tmp_path: Path, commands: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert commands == []
    monkeypatch.setattr(ledger_program, "SETTINGS", tmp_path)
    left = tmp_path / "gpt-oss.secret.env"
    left.write_text("KEY=hidden\n")
    in_force(tmp_path, "r1", "ready", "good")
    assert left.exists()
    bare = request(tmp_path, "r2")
    bare["files"] = [file for file in bare["files"] if not file["secret"]]
    stage(bare, tmp_path)
    Ledger("gpt-oss", tmp_path).mark("r2", "ready")
    assert left.exists()
    Ledger("gpt-oss", tmp_path).mark("r2", "good")
    assert not left.exists()


def test_what_is_not_there_can_not_be_put_in_force(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="missing or unreadable"):
        Ledger("gpt-oss", tmp_path).put_in_force("r9")


def test_the_past_of_a_release_is_kept(tmp_path: Path, commands: list[list[str]]) -> None:
    ledger = in_force(tmp_path, "r1", "activated", "ready")
    stage(request(tmp_path), tmp_path)
    entry = ledger.entry("r1")
    assert entry is not None
    assert [event["event"] for event in entry["events"]] == ["activated", "ready"]
    assert commands


def judged(tmp_path: Path, release: str = "r1", *, good: bool, proven: bool = True) -> None:
    result = tmp_path / f"gates/gpt-oss/{release}.json"
    result.parent.mkdir(parents=True, exist_ok=True)
    result.write_text('{"report": 1}')
    judgement = {"verdict": "PASS" if good else "FAIL", "thresholds": "t"}
    document = {"service": "gpt-oss", "id": release, "judgement": judgement, "good": good, "proven": proven}
    judge({**document, "reason": "tg32: 2.00 below 5"}, tmp_path)
    stored = json.loads(result.read_text())
    assert (stored["report"], stored["judgement"]["thresholds"]) == (1, "t")


def last_event(tmp_path: Path, release: str = "r1") -> tuple[str, str]:
    event = (Ledger("gpt-oss", tmp_path).entry(release) or {})["events"][-1]
    return event["event"], event.get("note")


@pytest.mark.parametrize(("good", "last_good"), [(True, "r1"), (False, None)])
def test_a_judgement_decides_what_is_good(
    tmp_path: Path, commands: list[list[str]], good: bool, last_good: str | None
) -> None:
    ledger = in_force(tmp_path, "r1", "activated", "ready")
    write_pending(ledger, Pending("r1"))
    judged(tmp_path, good=good)
    assert ledger.linked("last-good") == last_good
    # Without another good release there is nothing left to do.
    assert read_pending(ledger) is None
    assert commands


def test_a_failure_with_a_good_release_before_it_asks_for_that_one(tmp_path: Path, commands: list[list[str]]) -> None:
    in_force(tmp_path, "r1", "activated", "ready", "good")
    ledger = in_force(tmp_path, "r2", "activated", "ready")
    judged(tmp_path, "r2", good=False)
    assert last_event(tmp_path, "r2") == ("gate failed", "tg32: 2.00 below 5")
    assert read_pending(ledger) == Pending("r2", "r1")
    assert commands


def test_what_was_not_measured_marks_nothing_as_bad(tmp_path: Path, commands: list[list[str]]) -> None:
    in_force(tmp_path, "r1", "activated", "ready", "good")
    ledger = in_force(tmp_path, "r2", "activated", "ready")
    write_pending(ledger, Pending("r2", "r1"))
    judged(tmp_path, "r2", good=False, proven=False)
    assert last_event(tmp_path, "r2")[0] == "gate not measured"
    assert read_pending(ledger) == Pending("r2", "r1")
    judged(tmp_path, "r2", good=True)
    assert ledger.linked("last-good") == "r2"
    assert commands


@pytest.mark.parametrize("events", [[], ["activated"], ["activated", "failed to start"], ["activated", "withdrawn"]])
def test_what_was_not_seen_ready_is_never_good(tmp_path: Path, commands: list[list[str]], events: list[str]) -> None:
    in_force(tmp_path, "r1", *events)
    with pytest.raises(SystemExit, match="was not seen ready"):
        judged(tmp_path, good=True)
    assert Ledger("gpt-oss", tmp_path).linked("last-good") is None
    assert commands


def test_a_judgement_of_another_release_than_serves_is_refused(tmp_path: Path, commands: list[list[str]]) -> None:
    in_force(tmp_path, "r1", "activated", "ready")
    in_force(tmp_path, "r2", "activated", "ready")
    with pytest.raises(SystemExit, match="release r2 is in force, and not r1"):
        judged(tmp_path, "r1", good=True)
    assert commands


def test_only_devices_that_are_there_are_passed_on() -> None:
    command = ["docker", "run", "--rm", "image"]
    assert start_container.with_devices(command, ["/dev/null", "/dev/no-such-node"]) == [
        *["docker", "run", "--device", "/dev/null", "--rm", "image"],
    ]


BEFORE, NOW = {"driver": "580.95.05", "docker": "28"}, {"driver": "580.126.09", "docker": "28"}


def test_what_a_release_was_proved_on_is_kept_with_it(tmp_path: Path, commands: list[list[str]]) -> None:
    ledger = in_force(tmp_path, "r1", "ready")
    ledger.prove("r1", "PASS", BEFORE)
    # Staged again, as for a start, and not known what it is on: what is known stays.
    stage(request(tmp_path), tmp_path)
    ledger.mark("r1", "activated")
    ledger.prove("r1", "PASS", None)
    entry = ledger.entry("r1")
    assert entry is not None
    assert entry["proved_on"] == BEFORE
    assert [event["event"] for event in entry["events"]] == ["ready", "good", "activated", "good"]
    assert commands


def test_a_release_is_proved_again_where_something_was_upgraded(tmp_path: Path, commands: list[list[str]]) -> None:
    ledger = in_force(tmp_path, "r1", "ready")
    ledger.prove("r1", "PASS", BEFORE)
    ledger.prove("r1", "PASS", NOW)
    entry = ledger.entry("r1")
    assert entry is not None
    assert entry["proved_on"] == NOW
    assert {name: entry["events"][-1].get(name) for name in ("event", "note", "changed")} == {
        "event": "proved again", "note": "PASS", "changed": "driver 580.95.05 → 580.126.09",
    }  # fmt: skip
    assert (standing(entry), was_good(entry), ledger.linked("last-good")) == ("good", True, "r1")
    ledger.prove("r1", "PASS", NOW)
    assert (ledger.entry("r1") or {})["events"][-1]["event"] == "good"
    assert commands


def measured(tmp_path: Path, versions: dict[str, str]) -> None:
    path = tmp_path / "gates/gpt-oss/r1.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"versions": versions}))


@pytest.mark.parametrize("good", [True, False])
def test_the_gate_notes_on_what_it_measured(tmp_path: Path, commands: list[list[str]], good: bool) -> None:
    ledger = in_force(tmp_path, "r1", "ready")
    judgement: dict[str, Any] = {"service": "gpt-oss", "id": "r1", "judgement": {"verdict": "x", "thresholds": "t"}}
    measured(tmp_path, BEFORE)
    judge({**judgement, "good": True}, tmp_path)
    measured(tmp_path, NOW)
    judge({**judgement, "good": good, "reason": "too slow"}, tmp_path)
    entry = ledger.entry("r1")
    assert entry is not None
    assert entry["events"][-1]["event"] == ("proved again" if good else "gate failed")
    assert entry["events"][-1]["changed"] == "driver 580.95.05 → 580.126.09"
    # What failed was proved on nothing new.
    assert entry["proved_on"] == (NOW if good else BEFORE)
    assert commands
