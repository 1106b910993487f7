"""What becomes of releases that fail, on a lab host: a fake engine in a real image, everything around it real."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.lab.fake_release import FAST, PORT, SAYS, SERVICE, by_hand, deployed, fleet_of
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
        ("empty", {"FAKE_FAULT": "empty"}, "empty content and reasoning"),
    ],
)
def test_a_release_that_never_gets_ready_makes_way(
    lab: Lab, good: Path, name: str, fault: dict[str, str], reason: str
) -> None:
    old = served(lab, good).release()
    bad_fleet = fleet_of(lab, HOST, name, **FAST, **fault)

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
    slow_fleet = fleet_of(lab, HOST, "slow", FAKE_TOKEN_S="0.5")

    run = deployed(lab, slow_fleet)

    slow = newest(lab)
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
    assert "environment FAKE_TOKEN_S: 0.5 → 0.004" in told.text
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
