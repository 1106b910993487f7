"""What becomes of a good release that crashes, hangs or takes too much: a fake engine in a real image on a lab host."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from modules.release.unit import RESTART_PAUSE_S, START_ATTEMPTS
from tests.lab.fake_release import FAST, FAULT, SERVICE, deployed, fleet_of
from tests.lab.lab_driver import Lab
from tests.lab.limited import containers_within, limited, logins, oom_kills
from tests.lab.served import Served

pytestmark = [pytest.mark.lab, pytest.mark.long]
HOST = "spark-2"
UNIT, WATCH = f"tinderbox-{SERVICE}.service", f"tinderbox-watch@{SERVICE}.service"
LEDGER, MEMORY = f"/var/lib/tinderbox/ledger/{SERVICE}", f"/etc/tinderbox/{SERVICE}.memory.json"
EVERY_S, CHECKS = 5, 2
_PAUSE_S = 1.0
MIB = 1024**2


@pytest.fixture(scope="module")
def fleet(lab: Lab) -> Iterator[Path]:
    """A fleet file whose release is ready on the host; its containers count as the host's."""
    with containers_within(lab, HOST):
        yield serving(lab)


def serving(lab: Lab) -> Path:
    """The fleet file, once the host serves by it."""
    path = fleet_of(lab, HOST, "enduring", {"gate": None, "watchdog": {"every_s": EVERY_S, "checks": CHECKS}}, **FAST)
    run = deployed(lab, path)
    assert run.rc == 0, run.text
    return path


@pytest.fixture
def server(lab: Lab, fleet: Path) -> Iterator[Served]:
    """The service, ready, with none of its starts counted but the last."""
    served = Served(lab, fleet, HOST)
    fresh(lab)
    served.await_ready()
    yield served
    fresh(lab)


def fresh(lab: Lab) -> None:
    """The service as if nothing had happened to it."""
    lab.ssh(HOST, f"sudo rm -f {FAULT}; sudo systemctl stop {UNIT}; sudo systemctl reset-failed {UNIT}", check=False)
    lab.ssh(HOST, f"sudo systemctl start {UNIT}")


def now(lab: Lab) -> str:
    """The host's time, for journalctl."""
    return lab.ssh(HOST, "date +%s.%N").stdout.strip()


def journal(lab: Lab, since: str, unit: str = UNIT) -> list[dict[str, Any]]:
    """Its lines since then, systemd's own among them."""
    shown = lab.ssh(HOST, f"sudo journalctl -u {unit} --since=@{since} --output=json --no-pager").stdout
    return [json.loads(line) for line in shown.splitlines()]


def starts(lines: list[dict[str, Any]]) -> list[float]:
    """When systemd began to start the unit, in seconds."""
    # SD_MESSAGE_UNIT_STARTING: it stands in every version of systemd, whatever the words are.
    begun = [line for line in lines if line.get("MESSAGE_ID") == "7d4958e842da4a758f6c1cdc7b36dcc5"]
    return [int(line["__MONOTONIC_TIMESTAMP"]) / 1e6 for line in begun]


def texts(lines: list[dict[str, Any]]) -> list[str]:
    return [line["MESSAGE"] for line in lines if isinstance(line.get("MESSAGE"), str)]


def events(lab: Lab, release: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(lab.read(HOST, f"{LEDGER}/{release}.json"))["events"]
    return found


def until(true: Callable[[], object], limit_s: float = 240) -> None:
    """Wait for it; a test that waits in vain says so."""
    deadline = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(_PAUSE_S)


def fail_with(lab: Lab, fault: str) -> None:
    lab.ssh(HOST, f"echo {fault} | sudo tee {FAULT}")


def assert_bounded(lab: Lab, since: str) -> list[str]:
    """So many starts, each after its pause, and then none any more. Returns what the unit logged."""
    lines = journal(lab, since)
    begun = starts(lines)
    assert len(begun) == START_ATTEMPTS, begun
    pauses = [later - earlier for earlier, later in itertools.pairwise(begun)]
    assert all(pause >= RESTART_PAUSE_S for pause in pauses), pauses
    assert lab.ssh(HOST, f"systemctl show -P NRestarts {UNIT}").stdout.strip() == str(START_ATTEMPTS)
    time.sleep(RESTART_PAUSE_S + 5)
    assert starts(journal(lab, since)) == begun
    return texts(lines)


def said_in_crash_loop(lab: Lab, server: Served, fault: str) -> list[str]:
    """Start it anew with the fault, see that its restarts are bounded, and return what it logged meanwhile."""
    lab.ssh(HOST, f"sudo systemctl stop {UNIT}; sudo systemctl reset-failed {UNIT}")
    fail_with(lab, fault)
    since = now(lab)
    lab.ssh(HOST, f"sudo systemctl start --no-block {UNIT}")
    until(lambda: server.state() == "failed")
    return assert_bounded(lab, since)


def test_a_crash_loop_ends_in_failed_after_the_bounded_number_of_starts(lab: Lab, server: Served) -> None:
    said = said_in_crash_loop(lab, server, "exits")
    assert said.count("out of order, as it was told to be") == START_ATTEMPTS


def test_so_does_one_of_a_server_that_dies_each_time_after_it_was_ready(lab: Lab, server: Served) -> None:
    said = said_in_crash_loop(lab, server, "dies")
    assert sum("await-ready: ready after" in line for line in said) == START_ATTEMPTS
    # What a stop of a restart waited for.
    assert sum("memory-return: " in line for line in said) == START_ATTEMPTS


def test_a_server_that_hangs_is_diagnosed_recorded_and_restarted_within_the_same_bound(
    lab: Lab, server: Served
) -> None:
    release, since = server.release(), now(lab)
    before = len(events(lab, release))
    for restarted in range(1, START_ATTEMPTS + 1):
        invocation = server.invocation()
        fail_with(lab, "hangs")
        # It goes on answering who asks whether it is there.
        models = f"http://127.0.0.1:{server.plan.service.port}/v1/models"
        assert lab.ssh(HOST, f"curl -sS --max-time 20 {models}").json["data"]
        until(lambda: len(events(lab, release)) == before + restarted)  # noqa: B023
        told = events(lab, release)[-1]
        assert (told["event"], told["by"]) == ("restarted", "watchdog")
        assert f"wedged: no reply and no token counted in {CHECKS} checks" in told["note"]
        assert "watchdog: wedged" in lab.read(HOST, f"{LEDGER}/{release}.wedged.log")
        if restarted < START_ATTEMPTS:
            until(lambda: server.state() == "active" and server.invocation() != invocation)  # noqa: B023
            assert server.reply()
    until(lambda: server.state() == "failed")
    # The first start was the fixture's.
    assert len(starts(journal(lab, since))) == START_ATTEMPTS - 1
    assert lab.ssh(HOST, f"systemctl is-active {WATCH}", check=False).stdout.strip() == "inactive"
    found = lab.pyinfra("deploys/diagnose.py", "-y", fleet=server.fleet)
    assert "server-wedged" in found.text


def test_one_that_is_slow_because_it_works_is_left_alone(lab: Lab, server: Served) -> None:
    release, invocation, since = server.release(), server.invocation(), now(lab)
    before = len(events(lab, release))
    fail_with(lab, "works")
    time.sleep(6 * EVERY_S * CHECKS)
    assert (server.state(), server.invocation(), len(events(lab, release))) == ("active", invocation, before)
    assert not any("no reply" in line for line in texts(journal(lab, since, WATCH)))
    # The watch ran, and asked.
    assert lab.ssh(HOST, f"systemctl is-active {WATCH}").stdout.strip() == "active"


def test_an_engine_of_somebody_else_is_named_and_left_alone(lab: Lab, server: Served) -> None:
    lab.ssh(HOST, f"sudo systemctl stop {UNIT}; sudo systemctl reset-failed {UNIT}")
    lab.ssh(HOST, "sudo systemd-run --quiet --unit=stranger bash -c 'exec -a \"vllm serve\" sleep 600'")
    since = now(lab)
    try:
        lab.ssh(HOST, f"sudo systemctl start --no-block {UNIT}")
        words = "memory-gate: refused: another engine runs here"
        until(lambda: any(words in line for line in texts(journal(lab, since))))
        assert any("vllm serve (pid " in line for line in texts(journal(lab, since)))
        assert lab.ssh(HOST, "systemctl is-active stranger").stdout.strip() == "active"
        assert lab.ssh(HOST, "sudo docker ps -q").stdout == ""
    finally:
        lab.ssh(HOST, f"sudo systemctl stop {UNIT} stranger", check=False)


def test_a_start_without_room_is_refused_before_it_takes_any(lab: Lab, server: Served) -> None:
    lab.ssh(HOST, f"sudo systemctl stop {UNIT}; sudo systemctl reset-failed {UNIT}")
    needs = json.loads(lab.read(HOST, MEMORY))["needs"]
    assert needs > 1024 * MIB
    since, killed = now(lab), oom_kills()
    with limited(lab, HOST, 1024 * MIB), logins(lab, HOST) as seen:
        lab.ssh(HOST, f"sudo systemctl start --no-block {UNIT}")
        until(lambda: any("memory-gate: refused" in line for line in texts(journal(lab, since))))
        lab.ssh(HOST, f"sudo systemctl stop {UNIT}")
    assert not any("fake engine" in line for line in texts(journal(lab, since)))
    assert (seen.failed, oom_kills()) == ([], killed)
    assert seen.done > 5


def test_an_engine_that_takes_more_than_its_plan_is_stopped_and_its_host_lives(lab: Lab, server: Served) -> None:
    lab.ssh(HOST, f"sudo systemctl stop {UNIT}; sudo systemctl reset-failed {UNIT}")
    kept = lab.read(HOST, MEMORY)
    # A plan that is wrong: it asks for little, and the engine takes all that there is.
    lab.write(HOST, MEMORY, json.dumps({**json.loads(kept), "needs": 512 * MIB}))
    fail_with(lab, "eats")
    since, killed = now(lab), oom_kills()
    try:
        with limited(lab, HOST, 2048 * MIB), logins(lab, HOST) as seen:
            lab.ssh(HOST, f"sudo systemctl start --no-block {UNIT}")
            until(lambda: server.state() == "failed")
            said = assert_bounded(lab, since)
    finally:
        lab.write(HOST, MEMORY, kept)
    assert sum("load-guard: stopped the engine: it was loading, and 0." in line for line in said) == START_ATTEMPTS
    assert sum("the load guard stopped it, since memory ran out" in line for line in said) == START_ATTEMPTS
    assert oom_kills() == killed
    assert seen.failed == []
    assert seen.done > 10
    found = lab.pyinfra("deploys/diagnose.py", "-y", fleet=server.fleet)
    assert "load-guard-stopped" in found.text


def test_an_engine_that_is_ready_is_guarded_no_more(lab: Lab, server: Served) -> None:
    assert lab.ssh(HOST, "pgrep -f load_guard.py", check=False).stdout == ""
    assert lab.ssh(HOST, "pgrep -f watch_service.py").stdout.split()
