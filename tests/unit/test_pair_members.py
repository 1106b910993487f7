"""The programs that keep a service together over its hosts, with systemd and docker stood in for."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from modules.hostside import pair_condition, pair_head, pair_members, pair_story, pair_worker
from modules.hostside.ledger import Ledger
from modules.hostside.pair_rules import DOWN, SKIPPED, UP, Order, Report, Unit

# As the programs have it: on a host they lie flat beside each other.
pair_place: Any = vars(pair_head)["place"]
UNIT = Unit("active", "running", "success", "g1", enabled=True)
FAILED = replace(UNIT, active="failed", sub="failed", result="exit-code")
IDLE = Report(current="r1", generation="g0", ended=True, holds=("r1", "r2"))


def entry(ledger: Ledger, release: str, events: list[dict[str, Any]], hosts: tuple[str, ...]) -> None:
    ledger.record(release, {"members": [{"host": host} for host in hosts]} if hosts else {}, [])
    for event in events:
        ledger.mark(release, **event)


@pytest.fixture
def acts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """What the programs do to the machine. Ledgers lie in `tmp_path`."""
    done: list[str] = []
    monkeypatch.setattr(pair_place, "RUN", tmp_path / "run")
    monkeypatch.setattr(pair_place, "kill", lambda service: done.append(f"kill {service}"))
    monkeypatch.setattr(pair_place, "systemctl", lambda *words: done.append(" ".join(words)))
    monkeypatch.setattr(pair_place, "set_enabled", lambda service, wanted: done.append(f"enabled {service} {wanted}"))
    monkeypatch.setattr(pair_place, "why_ended", lambda _service: "its unit is failed (exit-code)")
    for module in (pair_head, pair_worker):
        monkeypatch.setattr(module, "Ledger", lambda service: Ledger(service, tmp_path))
    return done


def head(monkeypatch: pytest.MonkeyPatch, heard: dict[str, Report], lost: set[str] = set()) -> pair_head.Head:  # noqa: B006
    found = pair_head.Head("gpt-oss")
    monkeypatch.setattr(found.links, "heard", lambda: {name: asdict(one) for name, one in heard.items()})
    monkeypatch.setattr(found.links, "lost", lambda name: name in lost)
    return found


def at(monkeypatch: pytest.MonkeyPatch, unit: Unit, now: float = 100.0) -> None:
    monkeypatch.setattr(pair_place, "unit_of", lambda _service: unit)
    monkeypatch.setattr(vars(pair_head)["time"], "monotonic", lambda: now)


def test_a_worker_whose_program_has_just_begun_and_says_nothing_yet_ends_nobodys_part(
    acts: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ledger = Ledger("gpt-oss", tmp_path)
    entry(ledger, "r1", [{"event": "activated"}, {"event": "ready"}], ("spark-1", "spark-2"))
    (ledger.directory / "current").symlink_to("r1.json")
    one = head(monkeypatch, {})
    at(monkeypatch, UNIT)
    for said, done in (
        ({}, []),
        (asdict(replace(IDLE, generation="g1", ended=False)), []),
        (asdict(IDLE), ["kill gpt-oss"]),
    ):
        monkeypatch.setattr(one.links, "heard", lambda said=said: {"spark-2": said})
        one.tick()
        assert acts == done


def test_a_head_starts_a_pair_that_fell_twice_and_then_gives_up(
    acts: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ledger = Ledger("gpt-oss", tmp_path)
    entry(ledger, "r1", [{"event": "activated"}, {"event": "ready"}], ("spark-1", "spark-2"))
    (ledger.directory / "current").symlink_to("r1.json")
    one = head(monkeypatch, {"spark-2": IDLE})
    now, start = 100.0, "start --no-block tinderbox-gpt-oss.service"
    for number in (1, 2, 3):
        at(monkeypatch, replace(UNIT, invocation=f"g{number}"), now)
        monkeypatch.setattr(one.links, "heard", lambda number=number: {
            "spark-2": asdict(replace(IDLE, generation=f"g{number}", ended=False))
        })  # fmt: skip
        one.tick()
        monkeypatch.setattr(one.links, "heard", lambda: {"spark-2": asdict(IDLE)})
        at(monkeypatch, replace(FAILED, invocation=f"g{number}"), now + 1)
        one.tick()
        assert acts.count(start) == min(number - 1, 2)
        at(monkeypatch, replace(FAILED, invocation=f"g{number}"), now + 70)
        one.tick()
        now += 100
    assert acts.count(start) == 2
    assert one.gave_up
    assert one.order["order"]["gave_up"]
    noted = [event for event in ledger.entry("r1")["events"] if event["event"] == "restarted"]  # type: ignore[index]
    assert [event["note"] for event in noted] == ["its unit is failed (exit-code)"] * 2
    # Somebody starts it: the counting begins anew.
    at(monkeypatch, replace(UNIT, active="activating", sub="start", invocation="g4"), now)
    one.tick()
    assert (one.restarts, one.gave_up) == (0, False)


def test_counting_outlives_the_program(acts: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert not acts
    at(monkeypatch, FAILED)
    one = head(monkeypatch, {})
    one.restarts, one.invocation = 2, "g1"
    one.tick()
    assert (head(monkeypatch, {}).restarts, head(monkeypatch, {}).invocation) == (2, "g1")
    assert (tmp_path / "run" / "gpt-oss.pair.json").exists()


def test_a_head_whose_worker_is_gone_ends_its_engine_and_says_why(
    acts: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ledger = Ledger("gpt-oss", tmp_path)
    entry(ledger, "r1", [{"event": "activated"}], ("spark-1", "spark-2"))
    (ledger.directory / "current").symlink_to("r1.json")
    one = head(monkeypatch, {}, {"spark-2"})
    at(monkeypatch, UNIT)
    one.tick()
    assert acts == ["kill gpt-oss"]
    known = pair_place.read_json(tmp_path / "run" / "gpt-oss.pair.json") or {}
    assert (known["invocation"], known["why"]) == ("g1", "spark-2 is not reached any more")


def worker(
    monkeypatch: pytest.MonkeyPatch, order: Order | None, story: dict[str, Any] | None = None
) -> pair_worker.Worker:
    one = pair_worker.Worker("gpt-oss")
    said = {} if order is None else {"head": {"order": asdict(order), **({"story": story} if story else {})}}
    monkeypatch.setattr(one.links, "heard", lambda: said)
    return one


def test_a_worker_follows_its_head_and_starts_once_for_each_start(
    acts: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ledger = Ledger("gpt-oss", tmp_path)
    entry(ledger, "r1", [{"event": "activated"}], ("spark-1", "spark-2"))
    forced: list[str] = []
    monkeypatch.setattr(pair_place, "follow", lambda _ledger, release: forced.append(release))
    idle = replace(UNIT, active="inactive", sub="dead", enabled=False, invocation="")
    at(monkeypatch, idle)
    order = Order("r1", spans=True, wanted=True, state=UP, generation="g7")
    worker(monkeypatch, order).tick()
    assert forced == ["r1"]
    (ledger.directory / "current").symlink_to("r1.json")
    at(monkeypatch, replace(idle, enabled=True))
    one = worker(monkeypatch, order)
    one.tick()
    one.tick()
    assert acts.count("start --no-block tinderbox-gpt-oss.service") == 1
    assert one.message["generation"] == "g7"


def test_a_worker_has_the_heads_story(acts: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ledger = Ledger("gpt-oss", tmp_path)
    entry(ledger, "r1", [], ("spark-1", "spark-2"))
    entry(ledger, "r0", [], ())
    at(monkeypatch, replace(UNIT, active="inactive", sub="dead"))
    events = [{"at": "2026-11-30T00:00:00Z", "event": "ready"}]
    story = {"last_good": "r1", "events": {"r1": events, "unknown": events}}
    one = worker(monkeypatch, Order("r1", spans=False), story)
    one.tick()
    assert ledger.entry("r1")["events"] == events  # type: ignore[index]
    assert ledger.linked("last-good") == "r1"
    assert not ledger.entry_file("unknown").exists()
    assert not acts
    # When the head was proved, by a clock of the head's own, says nothing here.
    own = [{**event, "boot": "b", "up_s": "7"} for event in events]
    ledger.entry_file("r1").write_text(json.dumps({**(ledger.entry("r1") or {}), "events": own}))
    told = pair_story.digest({"last_good": "r1", "events": {"r1": events}})
    one.tick()
    assert one.message["story"] == told


KNOWN = {
    "head": True,
    "order": asdict(Order("r1", spans=True)),
    "workers": ["spark-2"],
    "reports": {"spark-2": asdict(IDLE)},
    "lost": [],
}


@pytest.mark.parametrize(
    ("known", "why"),
    [
        (KNOWN, ""),
        ({}, "has said nothing yet"),
        ({**KNOWN, "order": asdict(Order("r0", spans=True))}, "has yet to look"),
        ({**KNOWN, "reports": {}}, "spark-2 is not connected"),
        ({**KNOWN, "reports": {"spark-2": asdict(replace(IDLE, current="r2"))}}, "has release r2 in force"),
        ({**KNOWN, "reports": {"spark-2": asdict(replace(IDLE, ended=False))}}, "still runs a former start's part"),
        ({**KNOWN, "reports": {"spark-2": asdict(replace(IDLE, ended=False, generation="g1"))}}, ""),
    ],
)
def test_a_head_starts_only_with_all_of_its_workers(known: dict[str, Any], why: str) -> None:
    told = pair_condition.hinders_head(known, "r1", "g1")
    assert why in told
    assert bool(told) == bool(why)


@pytest.mark.parametrize(
    ("order", "status"),
    [
        (Order("r1", spans=True, state=UP, generation="g1"), 0),
        (Order("r1", spans=True, state=DOWN), 1),
        (Order("r2", spans=True, state=UP, generation="g1"), 1),
        # 255 is what systemd takes for a failure, and not for a condition that does not hold.
        (Order("r1", spans=True, state=DOWN, gave_up=True, why="it has failed 3 times"), 255),
        (None, 1),
    ],
)
def test_a_worker_starts_only_for_a_start_of_its_head(order: Order | None, status: int) -> None:
    assert pair_condition.worker_may({} if order is None else {"order": asdict(order)}, "r1")[0] == status


def test_before_what_serves_is_stopped_all_hosts_must_have_the_release() -> None:
    assert pair_members.missing(KNOWN, ("spark-2",), "r2") == ""
    assert pair_members.missing(KNOWN, ("spark-2",), "r3") == "spark-2 does not have it in its ledger"
    assert pair_members.missing(KNOWN, ("spark-2", "spark-3"), "r2") == "spark-3 is not connected"
    assert "has said nothing" in pair_members.missing({}, ("spark-2",), "r2")
    assert pair_members.await_members("gpt-oss", {"id": "r1", "release": {}}) == ""


def test_a_boot_without_the_others_is_no_failure() -> None:
    assert replace(UNIT, active="inactive", result=SKIPPED).state == DOWN
