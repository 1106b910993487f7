"""What becomes of releases that fail, on a lab host: a fake engine in a real image, everything around it real."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from modules.release.unit import STOP_S
from tests.lab.fake_release import FAST, MARLIN, PORT, SAYS, SERVICE, by_hand, deployed, fleet_of
from tests.lab.host_watch import watched
from tests.lab.lab_driver import Lab, Run
from tests.lab.served import Served

pytestmark = [pytest.mark.lab, pytest.mark.long]
HOST = "spark-2"
_LEDGER = f"/var/lib/tinderbox/ledger/{SERVICE}"


def served(lab: Lab, fleet: Path) -> Served:
    return Served(lab, fleet, HOST)


def entry(lab: Lab, release: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(lab.read(HOST, f"{_LEDGER}/{release}.json"))
    return found


def events(lab: Lab, release: str) -> list[str]:
    return [event["event"] for event in entry(lab, release)["events"]]


def seconds(lab: Lab, release: str, since: str, until: str) -> float:
    """From the last event of one kind to the last one of another."""
    at = {event["event"]: datetime.fromisoformat(event["at"]).timestamp() for event in entry(lab, release)["events"]}
    return at[until] - at[since]


def failed_at(lab: Lab, server: Served) -> float:
    """When the unit was last found not to get ready, by the host's clock."""
    journal = f"sudo journalctl -o short-unix --no-pager -u {server.unit} --grep 'await-ready: not ready after'"
    return float(lab.ssh(HOST, journal).stdout.splitlines()[-1].split()[0])


def restored_at(lab: Lab, release: str) -> float:
    event = entry(lab, release)["events"][-1]
    assert event["event"] == "restored"
    return datetime.fromisoformat(event["at"]).timestamp()


def newest(lab: Lab) -> str:
    """The release that was staged last."""
    listed = lab.ssh(HOST, f"sudo sh -c 'ls -t {_LEDGER}/*.json | grep -v attestation'").stdout.split()
    by_events = {Path(path).stem: entry(lab, Path(path).stem)["events"] for path in listed if "current" not in path}
    return max(
        by_events, key=lambda name: max(event["at"] for event in by_events[name] if event["event"] != "restored")
    )


def unchanged(run: Run) -> bool:
    totals = run.json["results"]["totals"]
    return run.rc == 0 and (totals["success"], totals["error"]) == (0, 0)


def containers(lab: Lab) -> list[str]:
    return lab.ssh(HOST, "sudo docker ps --format '{{.Names}}'").stdout.split()


@pytest.fixture(scope="module")
def good(lab: Lab) -> Path:
    """A fleet file whose release is good, and serves."""
    fleet = fleet_of(lab, HOST, "good", **FAST)
    run = deployed(lab, fleet)
    assert run.rc == 0, run.text
    assert SAYS in lab.ssh(HOST, f"sudo docker logs tinderbox-{SERVICE}").stdout
    return fleet


def test_a_good_release_is_good_and_a_second_run_changes_nothing(lab: Lab, good: Path) -> None:
    release = served(lab, good).release()
    assert events(lab, release)[-3:] == ["activated", "ready", "good"]
    assert "@" in entry(lab, release)["events"][0]["by"]
    run = deployed(lab, good)
    assert unchanged(run), run.text


@pytest.mark.parametrize(
    ("name", "fault", "reason"),
    [
        ("exits", {"FAKE_FAULT": "exits"}, "the server has ended"),
        # It hears no signal either.
        ("hangs", {"FAKE_FAULT": "mute"}, "not ready in time"),
        ("empty", {"FAKE_FAULT": "empty"}, "empty content and reasoning"),
        ("wrong-backend", {"FAKE_SAYS": MARLIN}, f"the log has a line that must not be there: {MARLIN}"),
        ("no-backend", {"FAKE_SAYS": "fake backend: none"}, "its log never said: fake backend: CUTLASS"),
    ],
)
def test_a_release_that_never_gets_ready_makes_way(
    lab: Lab, good: Path, name: str, fault: dict[str, str], reason: str
) -> None:
    old = served(lab, good).release()
    start_s = seconds(lab, old, "activated", "ready")
    bad_fleet = fleet_of(lab, HOST, name, **FAST, **fault)

    with watched(lab, HOST, SERVICE) as watch:
        run = deployed(lab, bad_fleet)

    assert run.rc == 1, run.text
    assert "did not get ready" in run.text
    assert reason in run.text
    assert f"release {old} serves again" in run.text
    server = served(lab, good)
    assert (server.release(), server.state(), containers(lab)) == (old, "active", [f"tinderbox-{SERVICE}"])
    assert server.reply()
    bad = newest(lab)
    assert bad in run.text
    assert events(lab, bad) == ["activated", "failed to start", "rolled back"]
    assert reason in entry(lab, bad)["events"][1]["note"]
    # The ledger's times are of whole seconds.
    assert restored_at(lab, old) - failed_at(lab, server) <= start_s + 60 + 1
    assert watch.most_engines() == 1
    assert bad not in watch.called_good()
    drift = lab.converge("--dry", "deploys/engine.py", fleet=bad_fleet)
    assert drift.rc == 2, drift.text
    assert f"{HOST}: would be refused at Engine | Service {SERVICE}" in drift.text
    assert f"release {bad} is not tried again unchanged: failed to start" in drift.text

    before = server.invocation()
    again = deployed(lab, bad_fleet)
    assert again.rc == 1, again.text
    assert f"release {bad} is not tried again unchanged" in again.text
    assert f"Release {old} serves, and was left running" in again.text
    assert server.invocation() == before
    assert events(lab, bad) == ["activated", "failed to start", "rolled back"]

    # What the fleet file wants again is there already.
    assert deployed(lab, good).rc == 0
    assert server.invocation() == before


def test_a_release_that_is_too_slow_for_its_gate_makes_way_and_is_tried_again_only_by_force(
    lab: Lab, good: Path
) -> None:
    server = served(lab, good)
    old = server.release()
    start_s = seconds(lab, old, "activated", "ready")
    slow_fleet = fleet_of(lab, HOST, "slow", FAKE_TOKEN_S="0.5")

    with watched(lab, HOST, SERVICE) as watch:
        run = deployed(lab, slow_fleet)

    slow = newest(lab)
    judged = max(
        datetime.fromisoformat(event["at"]).timestamp()
        for event in entry(lab, slow)["events"]
        if event["event"] == "gate failed"
    )
    assert restored_at(lab, old) - judged <= start_s + 60
    assert watch.most_engines() == 1
    assert slow not in watch.called_good()
    assert run.rc == 1, run.text
    assert f"gate of {SERVICE} failed, release {slow}" in run.text
    assert f"release {slow} of {SERVICE} failed its gate, and release {old} serves again" in run.text
    assert (server.release(), server.state(), containers(lab)) == (old, "active", [f"tinderbox-{SERVICE}"])
    assert server.reply()
    assert events(lab, slow) == ["activated", "ready", "gate failed", "rolled back"]

    before = server.invocation()
    again = deployed(lab, slow_fleet)
    assert again.rc == 1, again.text
    assert "is not tried again unchanged: gate failed" in again.text
    assert server.invocation() == before

    forced = deployed(lab, slow_fleet, TINDERBOX_FORCE="1")
    assert forced.rc == 1, forced.text
    assert server.release() == old
    assert events(lab, slow)[4:] == ["activated", "ready", "gate failed", "rolled back"]


def test_a_server_that_does_not_heed_its_stop_is_ended_and_the_new_one_starts(lab: Lab, good: Path) -> None:
    deaf_fleet = fleet_of(lab, HOST, "deaf", **FAST, FAKE_FAULT="deaf")
    assert deployed(lab, deaf_fleet).rc == 0
    server = served(lab, good)
    deaf = server.release()

    with watched(lab, HOST, SERVICE) as watch:
        run = deployed(lab, good)

    assert run.rc == 0, run.text
    assert (server.state(), containers(lab)) == ("active", [f"tinderbox-{SERVICE}"])
    assert server.release() != deaf
    assert server.reply()
    assert watch.most_engines() == 1
    # systemd's own account of the stop: docker's patience, and not the unit's end.
    journal = f"sudo journalctl -o short-unix --no-pager -u {server.unit} _PID=1"
    told = [line.split(maxsplit=3) for line in lab.ssh(HOST, journal).stdout.splitlines()]
    begun = max(float(words[0]) for words in told if words[3].startswith("Stopping"))
    ended = max(float(words[0]) for words in told if words[3].startswith("Stopped") and float(words[0]) > begun)
    assert STOP_S <= ended - begun < STOP_S + 30


def test_a_port_that_is_taken_is_told_with_its_holder_and_nothing_is_stopped(lab: Lab, good: Path) -> None:
    assert deployed(lab, good).rc == 0
    server = served(lab, good)
    old, before = server.release(), server.invocation()
    port = PORT + 1
    foreign = f"sudo systemd-run --quiet --unit foreign-listener python3 -m http.server --bind 127.0.0.1 {port}"
    lab.ssh(HOST, foreign)
    try:
        moved = fleet_of(lab, HOST, "moved", {"port": port}, **FAST)
        run = deployed(lab, moved)
        # After it: only a lock tells which image is meant.
        drift = lab.converge("--dry", "deploys/engine.py", fleet=moved)
        pid = lab.ssh(HOST, "systemctl show -P MainPID foreign-listener").stdout.strip()
        holder = f"its port {port} is taken by python3 (pid {pid})"
        assert (run.rc, drift.rc) == (1, 2), run.text + drift.text
        assert holder in run.text
        assert holder in drift.text
        assert lab.ssh(HOST, "systemctl is-active foreign-listener").stdout.strip() == "active"
        assert (server.release(), server.invocation(), server.state()) == (old, before, "active")
        assert server.reply()
    finally:
        lab.ssh(HOST, "sudo systemctl stop foreign-listener", check=False)
    assert unchanged(deployed(lab, good))
    # It is free now.
    run = deployed(lab, moved)
    assert run.rc == 0, run.text
    assert lab.ssh(HOST, f"curl -s --max-time 5 http://127.0.0.1:{port}/v1/models").rc == 0
    assert deployed(lab, good).rc == 0


def test_history_rollback_stop_and_remove(lab: Lab, good: Path) -> None:
    server = served(lab, good)
    old = server.release()
    better_fleet = fleet_of(lab, HOST, "better", FAKE_TOKEN_S="0.004")
    run = deployed(lab, better_fleet)
    assert run.rc == 0, run.text
    new = server.release()
    assert new != old

    told = by_hand(lab, "history", better_fleet)
    assert told.rc == 0, told.text
    assert f"{new}  " in told.text
    assert "in force; last good" in told.text
    # Against whatever release came before it.
    assert re.search(r"environment FAKE_TOKEN_S: \S+ → 0.004", told.text)
    assert "failed to start: the server has ended" in told.text

    rolled = by_hand(lab, "rollback", better_fleet)
    assert rolled.rc == 0, rolled.text
    assert (server.release(), server.state()) == (old, "active")
    assert server.reply()
    assert unchanged(by_hand(lab, "rollback", better_fleet))
    refused = deployed(lab, better_fleet)
    assert refused.rc == 1, refused.text
    assert "not tried again unchanged: withdrawn" in refused.text
    nonsense = by_hand(lab, "rollback", better_fleet, TINDERBOX_RELEASE="0123")
    assert nonsense.rc == 1
    assert f"{HOST}: service {SERVICE} can not be rolled back: the ledger has no release 0123" in nonsense.text

    stopped = by_hand(lab, "stop", good)
    assert stopped.rc == 0, stopped.text
    assert (server.state(), containers(lab)) == ("inactive", [])
    assert unchanged(by_hand(lab, "stop", good))
    assert deployed(lab, good).rc == 0
    assert server.state() == "active"

    removed = by_hand(lab, "remove", good, TINDERBOX_SERVICE=SERVICE)
    assert removed.rc == 0, removed.text
    left = f"ls /etc/systemd/system /etc/tinderbox /var/lib/tinderbox/ledger /var/lib/tinderbox/gates | grep {SERVICE}"
    assert lab.ssh(HOST, f"sudo sh -c '{left}'", check=False).stdout == ""
    assert containers(lab) == []
    assert lab.ssh(HOST, f"curl -s --max-time 5 http://127.0.0.1:{PORT}/v1/models", check=False).rc != 0
    # Weights and images stay.
    assert lab.ssh(HOST, "sudo docker image ls -q --filter label=tinderbox.recipe").stdout
    assert unchanged(by_hand(lab, "remove", good, TINDERBOX_SERVICE=SERVICE))
