"""Four lab hosts behind HAProxy, under constant load of a real client, go through changes: what is lost and told.

Engine and GPU are fakes; strategy, controller, units, ledgers, gates, HAProxy, agents and client are real.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from modules.lab.layout import ROOT
from tests.lab.behind_gateway import GATEWAY_HOST, KEYS, METRICS_PORT, MODEL, url
from tests.lab.debian_packages import offered
from tests.lab.fake_release import SERVICE, by_hand
from tests.lab.gateway_load import Account, under_load
from tests.lab.lab_driver import Lab
from tests.lab.rolling_fleet import HOSTS, SLOW_S, Controller, Ledgers, fleet_of

pytestmark = [pytest.mark.lab, pytest.mark.long]
FOLLOWERS = HOSTS[1:]
ALL_AT_ONCE = {"canary": 0, "batch": 4, "soak": "0"}


@pytest.fixture(scope="module")
def ledgers(wide_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Ledgers:
    """The hosts, which serve a good release."""
    fleet = fleet_of(wide_lab, strategy=ALL_AT_ONCE, FAKE_NOTE="first")
    with offered(wide_lab, GATEWAY_HOST, "haproxy", tmp_path_factory.mktemp("haproxy")):
        run = wide_lab.converge(fleet=fleet)
    assert run.rc == 0, run.text
    await_up(wide_lab)
    return Ledgers(wide_lab)


def taking(lab: Lab) -> list[str]:
    """The hosts to which HAProxy sends requests."""
    text = lab.ssh(GATEWAY_HOST, f"curl -sS 'http://127.0.0.1:{METRICS_PORT}/stats;csv'").stdout
    names, *rows = [line.split(",") for line in text.removeprefix("# ").splitlines() if line]
    found = [dict(zip(names, row, strict=False)) for row in rows]
    return sorted(row["svname"] for row in found if row["svname"] in HOSTS and row["status"].startswith("UP"))


def await_up(lab: Lab, hosts: tuple[str, ...] = HOSTS) -> None:
    """Until the gateway sends requests to these."""
    deadline = time.monotonic() + 120
    while taking(lab) != list(hosts):
        assert time.monotonic() < deadline, taking(lab)
        time.sleep(0.5)


@contextmanager
def asked(lab: Lab, what: str, *, plain: int = 0) -> Iterator[Account]:
    """The load, and its account for whoever reads the log. `plain`: clients that ask for no stream; they cost much."""
    with under_load(url(lab), KEYS["alice-key"], MODEL, streams=4, plain=plain, tokens=30) as account:
        time.sleep(3)
        yield account
        time.sleep(3)
    sys.stdout.write(f"\n{what}: {account.text()}\n")


def reported(lab: Lab, fleet: Path) -> tuple[dict[str, Any], str]:
    """What the report's JSON tells of the rollout, and what is printed."""
    run = lab.tinderbox([sys.executable, "-m", "modules.reporting"], fleet=fleet)
    assert run.rc == 0, run.text
    folder = ROOT / "reports" / "rolling"
    assert 'id="rollout"' in (folder / "index.html").read_text()
    return json.loads((folder / "report.json").read_text())["rollout"], run.stdout


def test_a_changed_flag_goes_over_the_hosts_and_nothing_is_lost(wide_lab: Lab, ledgers: Ledgers) -> None:
    old = ledgers.all_serve()
    fleet = fleet_of(wide_lab, FAKE_NOTE="flag")
    with asked(wide_lab, "a changed flag", plain=1) as account:
        run = wide_lab.converge(fleet=fleet)
    assert run.rc == 0, run.text
    assert account.lost == [], account.text()
    assert set(account.complete) == set(HOSTS)
    new = ledgers.all_serve()
    assert len(set(new.values())) == 1
    assert set(new.values()).isdisjoint(old.values())
    steps = {host: ledgers.brought_by(host).partition(": ")[2] for host in HOSTS}
    assert steps == {
        "spark-1": "canary",
        "spark-2": "batch 1 of 2",
        "spark-3": "batch 1 of 2",
        "spark-4": "batch 2 of 2",
    }
    assert "soaking until" in run.text
    assert {ledgers.rollout(host)["state"] for host in HOSTS} == {"finished"}
    ident = ledgers.rollout("spark-1")["id"]
    told = by_hand(wide_lab, "history", fleet)
    assert f"rollout {ident}: batch 2 of 2" in told.text
    again = wide_lab.converge(fleet=fleet)
    assert again.rc == 0, again.text
    assert ledgers.all_serve() == new


def test_a_canary_that_fails_its_gate_stops_the_fleet(wide_lab: Lab, ledgers: Ledgers) -> None:
    old, starts = ledgers.all_serve(), {host: ledgers.invocation(host) for host in FOLLOWERS}
    fleet = fleet_of(wide_lab, FAKE_TOKEN_S=SLOW_S)
    with asked(wide_lab, "a canary that fails its gate") as account:
        run = wide_lab.converge(fleet=fleet)
        again = wide_lab.converge(fleet=fleet)
        await_up(wide_lab)
    assert account.lost == [], account.text()
    assert (run.rc, again.rc) == (1, 1), run.text + again.text
    assert "stopped: the canary has failed: spark-1" in run.text
    assert "left on the release that they served: spark-2, spark-3, spark-4" in run.text
    # No other host has tried it, neither then nor in the run after.
    assert "not begun: 1 host has failed, and none may" in again.text
    assert ledgers.all_serve() == old
    assert {host: ledgers.invocation(host) for host in FOLLOWERS} == starts
    noted = ledgers.rollout("spark-4")
    assert (noted["state"], noted["held"]) == ("stopped", ["spark-2", "spark-3", "spark-4"])
    found, printed = reported(wide_lab, fleet)
    assert (found["state"], found["id"]) == ("stopped", noted["id"])
    assert "held back, serving what they served: spark-2, spark-3, spark-4" in printed


def test_pyinfra_alone_does_not_change_all_hosts_at_once(wide_lab: Lab, ledgers: Ledgers) -> None:
    old = ledgers.all_serve()
    fleet = fleet_of(wide_lab, FAKE_NOTE="alone")
    run = wide_lab.pyinfra("deploys/engine.py", "-y", fleet=fleet)
    assert run.rc == 1, run.text
    assert "4 hosts would have their turn at once" in run.text
    assert ledgers.all_serve() == old


def test_a_controller_that_is_killed_between_batches_is_continued(wide_lab: Lab, ledgers: Ledgers) -> None:
    old = ledgers.all_serve()
    first, second = HOSTS[:2], HOSTS[2:]
    fleet = fleet_of(wide_lab, strategy={"canary": 0, "batch": 2}, FAKE_NOTE="killed")
    with asked(wide_lab, "a controller killed between batches") as account:
        controller = Controller.start(wide_lab, fleet, "killed")
        controller.await_said(f"\nbatch 2 of 2: {', '.join(second)}\n", limit_s=900)
        controller.kill()
        between = ledgers.all_serve()
        starts = {host: ledgers.invocation(host) for host in first}
        run = wide_lab.converge(fleet=fleet)
        await_up(wide_lab)
    assert {host: between[host] for host in second} == {host: old[host] for host in second}
    assert {between[host] for host in first}.isdisjoint(old.values())
    assert run.rc == 0, run.text
    assert account.lost == [], account.text()
    assert len(set(ledgers.all_serve().values())) == 1
    # What had its turn is not touched again.
    assert {host: ledgers.invocation(host) for host in first} == starts
    ids = {ledgers.brought_by(host).partition(":")[0] for host in HOSTS}
    assert ids == {ledgers.rollout("spark-4")["id"]}


def test_a_host_that_dies_in_its_batch_stops_the_fleet_and_is_continued(wide_lab: Lab, ledgers: Ledgers) -> None:
    old = ledgers.all_serve()
    fleet = fleet_of(wide_lab, strategy={"canary": 0, "batch": 3}, FAKE_NOTE="died")
    with asked(wide_lab, "a host that dies in its batch") as account:
        controller = Controller.start(wide_lab, fleet, "died")
        controller.await_said("\nbatch 1 of 2: spark-1, spark-2, spark-3\n", limit_s=900)
        # It is told to take no more requests, and has some.
        wide_lab.ssh("spark-3", f"until test -e /run/tinderbox/drain/{SERVICE}; do sleep 0.1; done", timeout_s=300)
        died = time.time()
        subprocess.run(["docker", "kill", wide_lab.layout.container("spark-3")], check=True, capture_output=True)
        status = controller.ended()
        said = controller.log.read_text()
    assert status == 1, said
    assert "1 host has failed, and none may" in said
    assert "left on the release that they served: spark-4" in said
    in_flight = [one for one in account.lost if one.host == "spark-3" and abs(one.at - died) < 30]
    sys.stdout.write(f"\nin flight on the host that died: {len(in_flight)}\n")
    assert account.lost == in_flight, account.text()
    assert len(in_flight) <= 4
    wide_lab.command("up")
    assert ledgers.serves("spark-4") == old["spark-4"]
    starts = {host: ledgers.invocation(host) for host in HOSTS[:2]}
    with asked(wide_lab, "the run after it is back") as after:
        run = wide_lab.converge(fleet=fleet)
        await_up(wide_lab)
    assert run.rc == 0, run.text
    assert after.lost == [], after.text()
    assert len(set(ledgers.all_serve().values())) == 1
    assert {host: ledgers.invocation(host) for host in HOSTS[:2]} == starts
    found, _ = reported(wide_lab, fleet)
    assert found["state"] == "finished"
