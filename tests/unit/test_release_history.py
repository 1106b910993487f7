"""How releases are told to people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from modules.facts.releases import ReleaseHistory, ServiceHistory
from modules.hostside import history_state
from modules.hostside.ledger import Ledger
from modules.release.history import differences, rows, state_of

COMMAND = ("vllm", "serve", "/m", "--max-num-seqs", "8", "--enforce-eager")
CONTENT: dict[str, Any] = {
    "engine": "vllm", "profile": "latency", "image": "i:1", "model": "o/m", "commit": "c",
    "command": COMMAND, "environment": {"A": "1"}, "encodings": {}, "secrets": {"KEY": "f1"}, "unit": "u",
}  # fmt: skip


def event(name: str, at: str = "t1", **more: str) -> dict[str, str]:
    return {"event": name, "at": at, **more}


def release(name: str, standing: str, *events: dict[str, str], failure: dict[str, str] | None = None) -> dict[str, Any]:
    return {"id": name, "standing": standing, "failure": failure, "events": list(events), "content": CONTENT}


@pytest.mark.parametrize(
    ("standing", "current", "last_good", "told"),
    [
        ("good", "r1", "r1", "in force; last good"),
        ("ready", "r1", "r0", "in force; awaits its gate"),
        ("trying", "r1", "r0", "in force; is being started"),
        ("good", "r2", "r1", "last good"),
        ("good", "r2", "r2", "was good"),
        ("ready", "r2", "r2", "never judged"),
    ],
)
def test_how_it_stands(standing: str, current: str, last_good: str, told: str) -> None:
    assert state_of(release("r1", standing, event("ready")), current, last_good, "active") == told


def test_a_failure_is_told_with_its_reason_and_what_came_of_it() -> None:
    failed = event("failed to start", note="the server has ended")
    back = event("rolled back", note="release r0 serves again")
    bad = release("r1", "bad", event("activated"), failed, back, failure=failed)
    assert state_of(bad, "r0", "r0", "active") == ("failed to start: the server has ended; release r0 serves again")


def test_a_server_that_is_down_shows() -> None:
    assert state_of(release("r1", "good"), "r1", "r1", "failed").startswith("in force, its unit is failed")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"image": "i:2"}, "image: i:1 → i:2"),
        ({"command": ("vllm", "serve", "/m", "--max-num-seqs", "16", "--enforce-eager")}, "--max-num-seqs: 8 → 16"),
        ({"command": COMMAND[:-1]}, "--enforce-eager: set → not set"),
        ({"environment": {"A": "1", "B": "2"}}, "environment B: not set → 2"),
        ({"secrets": {"KEY": "f2"}}, "secrets KEY: f1 → f2"),
        ({"unit": "v"}, "the unit's text"),
    ],
)
def test_what_changed_is_told_by_its_name(change: dict[str, Any], told: str) -> None:
    assert differences(CONTENT, {**CONTENT, **change}) == (told,)


def test_of_the_first_and_of_an_equal_one_nothing_is() -> None:
    assert differences(None, CONTENT) == ()
    assert differences(CONTENT, CONTENT) == ()


def test_the_newest_comes_first_with_its_gate() -> None:
    releases = [
        release("r0", "good", event("activated", "t0", by="me@here"), event("good", "t2")),
        release("r1", "ready", event("activated", "t3")),
    ]
    found = ServiceHistory("active", "r1", "r0", tuple(releases), ())
    newest, oldest = rows(found, {"r0": ("PASS", "tg: 61.00")})
    assert newest.lines() == ["r1  t3  in force; awaits its gate"]
    assert oldest.lines() == ["r0  t0  last good", "    gate: PASS (tg: 61.00)", "    by: me@here"]


def test_the_host_tells_all_of_a_release_but_no_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_state, "unit_state", lambda _: {"ActiveState": "active"})
    ledger = Ledger("gpt-oss", tmp_path)
    ledger.record("r1", CONTENT, [])
    ledger.record("staged", CONTENT, [])
    ledger.mark("r1", "activated", by="me@here")
    ledger.mark("r1", "failed to start", "it broke")
    gates = tmp_path / "gates" / "gpt-oss"
    gates.mkdir(parents=True)
    (gates / "r1.json").write_text('{"release": "r1", "finished": "t1", "samples": {"clock_mhz": [1, 2]}}')

    document = history_state.service("gpt-oss", tmp_path)

    (only,) = document["releases"]  # one that was never in force has no history
    assert (only["id"], only["standing"], only["failure"]["note"]) == ("r1", "bad", "it broke")
    assert only["content"]["command"] == list(COMMAND)
    assert document["measurements"][0]["samples"] == {}
    told = ReleaseHistory().process([json.dumps({"gpt-oss": document})])
    assert told is not None
    assert rows(told["gpt-oss"], {})[0].lines()[0].endswith("failed to start: it broke")


def test_restarts_by_the_watchdog_are_told_the_newest_ones() -> None:
    hung = [event("restarted", at=f"t{at}", note=f"wedged {at}") for at in range(5)]
    found = ServiceHistory("active", "r1", "r1", (release("r1", "good", event("activated"), *hung),), ())
    (row,) = rows(found, {})
    assert row.restarts == ("2 times before", "t2: wedged 2", "t3: wedged 3", "t4: wedged 4")
    assert "    restarted: t4: wedged 4" in row.lines()


def test_on_what_it_was_proved_and_when_it_was_proved_again() -> None:
    proved = event("proved again", "t5", changed="driver 580.142 → 580.159.03")
    told = release("r0", "good", event("activated", "t0"), event("good", "t2"), proved)
    on = {"GPU": "NVIDIA GB10", "driver": "580.159.03", "CUDA toolkit": "none", "DGX OS": None, "image": "sha256:1"}
    (row,) = rows(ServiceHistory("active", "r0", "r0", ({**told, "proved_on": on},), ()), {})
    assert row.lines()[1:] == [
        "    proved on: GPU NVIDIA GB10, driver 580.159.03",
        "    proved again: t5: driver 580.142 → 580.159.03",
    ]


def test_a_gate_that_failed_after_an_upgrade_says_so() -> None:
    failed = event("gate failed", note="tg32: 2.00 below 5", changed="docker 28 → 29")
    bad = release("r1", "bad", event("good"), failed, failure=failed)
    assert state_of(bad, "r1", "r1", "active").endswith(
        "gate failed: tg32: 2.00 below 5; since it was good: docker 28 → 29"
    )
