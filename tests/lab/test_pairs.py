"""One engine over two lab hosts: whatever happens to one of them, both sides agree afterwards, in unit and ledger."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from tests.lab.fake_pair import HEAD_HOST, HOSTS, WORKER_HOST, Pair, pair_fleet
from tests.lab.fake_release import FAST, FAULT, SERVICE, by_hand, deploy_file, deployed
from tests.lab.killed_run import find_job
from tests.lab.lab_driver import Lab, Run
from tests.lab.served import Served

pytestmark = [pytest.mark.lab, pytest.mark.long]
_CONTAINER = f"tinderbox-{SERVICE}"


def unchanged(run: Run) -> bool:
    totals = run.json["results"]["totals"]
    return run.rc == 0 and (totals["success"], totals["error"]) == (0, 0)


def kill_engine(lab: Lab, host: str) -> None:
    lab.ssh(host, f"sudo kill -9 $(sudo docker inspect -f '{{{{.State.Pid}}}}' {_CONTAINER})")


def begin_anew(lab: Lab, pair: Pair) -> None:
    """Have somebody start the pair, which begins the counting of restarts anew."""
    lab.ssh(HEAD_HOST, f"sudo systemctl restart {_CONTAINER}")
    pair.agreed("active")


@pytest.fixture(scope="module")
def good(lab: Lab) -> Path:
    """A fleet file whose release is good, and serves over both hosts."""
    fleet = pair_fleet(lab, "good", **FAST)
    run = deployed(lab, fleet)
    assert run.rc == 0, run.text
    return fleet


@pytest.fixture
def pair(lab: Lab, good: Path) -> Pair:
    """The pair, serving."""
    pair = Pair(lab)
    if any(side.active != "active" for side in pair.sides()):
        run = deployed(lab, good)
        assert run.rc == 0, run.text
    pair.agreed("active")
    return pair


def replies(lab: Lab, fleet: Path) -> bool:
    return bool(Served(lab, fleet, HEAD_HOST).reply())


def test_both_hosts_have_one_release_and_a_second_run_changes_nothing(lab: Lab, pair: Pair, good: Path) -> None:
    before = pair.agreed("active")
    assert before.current == before.last_good != "none"
    assert replies(lab, good)
    for host, words in ((HEAD_HOST, "rank 1 has come"), (WORKER_HOST, "rank 1 has met rank 0")):
        assert words in lab.ssh(host, f"sudo docker logs {_CONTAINER}").stdout
    listening = lab.ssh(WORKER_HOST, "sudo ss -Hltn").stdout
    assert ":8055 " not in listening, "a worker has no API"
    run = deployed(lab, good)
    assert unchanged(run), run.text
    assert pair.agreed("active") == before
    key = f"/etc/tinderbox/{SERVICE}.pair.key"
    assert [lab.ssh(host, f"sudo stat -c '%a %U' {key}").stdout for host in HOSTS] == ["600 root\n"] * 2
    assert len({lab.read(host, key) for host in HOSTS}) == 1


def test_a_run_with_one_half_is_refused(lab: Lab, pair: Pair, good: Path) -> None:
    before = pair.agreed("active"), [pair.invocation(host) for host in HOSTS]
    for host in HOSTS:
        other = next(one for one in HOSTS if one != host)
        run = lab.pyinfra(str(deploy_file(lab)), "-y", "--limit", host, fleet=good)
        assert run.rc == 1, run.text
        assert f"this run leaves out {other}: its hosts change together or not at all" in run.text
        stop = lab.pyinfra("deploys/stop.py", "-y", "--limit", host, fleet=good)
        assert stop.rc == 1, stop.text
    assert (pair.agreed("active"), [pair.invocation(host) for host in HOSTS]) == before


@pytest.mark.parametrize("host", HOSTS)
def test_when_one_engine_dies_both_start_anew(lab: Lab, pair: Pair, good: Path, host: str) -> None:
    begin_anew(lab, pair)
    before = [pair.invocation(each) for each in HOSTS]
    kill_engine(lab, host)
    deadline = time.monotonic() + 90
    while any(pair.invocation(each) == old for each, old in zip(HOSTS, before, strict=True)):
        assert time.monotonic() < deadline, pair.journals()
        time.sleep(1)
    side = pair.agreed("active")
    assert "'restarted'" in side.events
    if host == WORKER_HOST:
        assert f"the part on {WORKER_HOST} has ended" in side.events
    assert replies(lab, good)


def test_a_head_that_hangs_is_found_by_its_watch_and_both_start_anew(lab: Lab, pair: Pair, good: Path) -> None:
    begin_anew(lab, pair)
    before = [pair.invocation(each) for each in HOSTS]
    lab.ssh(HEAD_HOST, f"echo hangs | sudo tee {FAULT}")
    deadline = time.monotonic() + 120
    while any(pair.invocation(each) == old for each, old in zip(HOSTS, before, strict=True)):
        assert time.monotonic() < deadline, pair.journals()
        time.sleep(1)
    pair.agreed("active")
    lab.ssh(HEAD_HOST, f"sudo rm -f {FAULT}")
    assert replies(lab, good)


def test_programs_that_are_killed_disturb_nothing(lab: Lab, pair: Pair) -> None:
    before = pair.agreed("active"), [pair.invocation(host) for host in HOSTS]
    for host in HOSTS:
        lab.ssh(host, f"sudo systemctl kill --signal=SIGKILL tinderbox-pair@{SERVICE}")
    time.sleep(25)
    assert (pair.agreed("active"), [pair.invocation(host) for host in HOSTS]) == before


def test_hosts_that_do_not_hear_each_other_both_end_and_meet_again(lab: Lab, pair: Pair, good: Path) -> None:
    begin_anew(lab, pair)
    lab.ssh(WORKER_HOST, f"sudo systemctl kill --signal=SIGSTOP tinderbox-pair@{SERVICE}")
    deadline = time.monotonic() + 60
    while pair.side(HEAD_HOST).active == "active":
        assert time.monotonic() < deadline, pair.journals()
        time.sleep(1)
    lab.ssh(WORKER_HOST, f"sudo systemctl kill --signal=SIGCONT tinderbox-pair@{SERVICE}")
    side = pair.agreed("active")
    assert f"{WORKER_HOST} is not reached any more" in side.events
    assert replies(lab, good)


@pytest.mark.parametrize("host", HOSTS)
def test_when_a_host_dies_the_other_ends_and_both_are_back_with_it(lab: Lab, pair: Pair, good: Path, host: str) -> None:
    begin_anew(lab, pair)
    other = next(each for each in HOSTS if each != host)
    subprocess.run(["docker", "kill", lab.layout.container(host)], check=True, capture_output=True)
    deadline = time.monotonic() + 60
    while lab.ssh(other, f"systemctl is-active {_CONTAINER}", check=False).stdout.strip() == "active":
        assert time.monotonic() < deadline, "the other half runs on alone"
        time.sleep(1)
    lab.command("up", "--hosts", "2")
    pair.agreed("active", within_s=240)
    assert replies(lab, good)


@pytest.mark.parametrize("host", HOSTS)
def test_after_a_reboot_of_one_both_serve(lab: Lab, pair: Pair, good: Path, host: str) -> None:
    begin_anew(lab, pair)
    lab.restart(host)
    pair.agreed("active", within_s=240)
    assert replies(lab, good)


def test_what_is_stopped_stays_stopped_over_a_reboot_until_the_next_run(lab: Lab, pair: Pair, good: Path) -> None:
    run = by_hand(lab, "stop", good)
    assert run.rc == 0, run.text
    side = pair.agreed("inactive")
    assert side.enabled == "disabled"
    again = by_hand(lab, "stop", good)
    assert unchanged(again), again.text
    lab.restart(WORKER_HOST)
    time.sleep(10)
    pair.agreed("inactive")
    run = deployed(lab, good)
    assert run.rc == 0, run.text
    assert pair.agreed("active").enabled == "enabled"


def test_a_gate_that_fails_takes_both_back(lab: Lab, pair: Pair, good: Path) -> None:
    old = pair.agreed("active")
    slow = pair_fleet(lab, "slow", FAKE_TOKEN_S="0.5")
    run = deployed(lab, slow)
    assert run.rc == 1, run.text
    assert "failed its gate" in run.text
    side = pair.agreed("active")
    assert (side.current, side.last_good) == (old.current, old.last_good)
    assert "'gate failed'" in side.events
    assert "'rolled back'" in side.events
    assert replies(lab, good)
    before = [pair.invocation(host) for host in HOSTS]
    again = deployed(lab, slow)
    assert again.rc == 1, again.text
    assert "is not tried again unchanged" in again.text
    assert [pair.invocation(host) for host in HOSTS] == before


def test_a_release_whose_worker_fails_takes_both_back(lab: Lab, pair: Pair, good: Path) -> None:
    old = pair.agreed("active")
    bad = pair_fleet(lab, "bad-worker", **FAST, FAKE_WORKER="exits")
    run = deployed(lab, bad)
    assert run.rc == 1, run.text
    assert f"the part on {WORKER_HOST} has ended" in run.text
    side = pair.agreed("active")
    assert (side.current, side.last_good) == (old.current, old.last_good)
    assert "'failed to start'" in side.events
    assert replies(lab, good)


def test_a_rollback_by_hand_is_one_of_both(lab: Lab, pair: Pair, good: Path) -> None:
    old = pair.agreed("active")
    newer = pair_fleet(lab, "newer", FAKE_TOKEN_S="0.006")
    run = deployed(lab, newer)
    assert run.rc == 0, run.text
    assert pair.agreed("active").current != old.current
    run = by_hand(lab, "rollback", newer)
    assert run.rc == 0, run.text
    side = pair.agreed("active")
    assert (side.current, side.last_good) == (old.current, old.last_good)
    assert "'withdrawn'" in side.events


def test_a_run_that_is_killed_while_it_activates_is_ended_by_the_next(lab: Lab, pair: Pair) -> None:
    old = pair.agreed("active")
    fleet = pair_fleet(lab, "cut", FAKE_TOKEN_S="0.007", FAKE_START_S="10")
    environment = lab.environment(fleet)
    argv = ["pyinfra", "inventory.py", str(deploy_file(lab)), "-y"]
    with subprocess.Popen(
        ["env", *(f"{k}={v}" for k, v in environment.items()), *argv], stdout=subprocess.DEVNULL
    ) as run:
        deadline = time.monotonic() + 120
        while pair.side(HEAD_HOST).current == old.current:
            assert time.monotonic() < deadline
            time.sleep(0.5)
        job = find_job(lab, HEAD_HOST, "start")
        run.kill()
    assert job is not None
    unit = f"tinderbox-job-{Path(job.directory).name}.service"
    lab.ssh(HEAD_HOST, f"sudo systemctl kill --signal=SIGKILL {unit}")
    ended = deployed(lab, fleet)
    assert ended.rc == 0, ended.text
    side = pair.agreed("active")
    assert side.current == side.last_good != old.current


def test_a_crash_loop_ends_in_failed_on_both(lab: Lab, pair: Pair, good: Path) -> None:
    begin_anew(lab, pair)
    lab.ssh(WORKER_HOST, f"echo exits | sudo tee {FAULT}")
    kill_engine(lab, WORKER_HOST)
    deadline = time.monotonic() + 240
    pair_unit = f"sudo journalctl --no-pager -b -u tinderbox-pair@{SERVICE}"
    while "not started again: it has failed 3 times" not in lab.ssh(HEAD_HOST, pair_unit).stdout:
        assert time.monotonic() < deadline, pair.journals()
        time.sleep(2)
    side = pair.agreed("failed")
    assert side.enabled == "enabled"
    time.sleep(20)
    assert pair.agreed("failed") == side
    lab.ssh(WORKER_HOST, f"sudo rm -f {FAULT}")
    run = deployed(lab, good)
    assert run.rc == 0, run.text
    pair.agreed("active")
    assert replies(lab, good)


def test_what_was_edited_on_the_worker_is_repaired(lab: Lab, pair: Pair, good: Path) -> None:
    lab.ssh(WORKER_HOST, f"echo FAKE_EDITED=1 | sudo tee -a /etc/tinderbox/{SERVICE}.env")
    run = deployed(lab, good)
    assert run.rc == 0, run.text
    assert not unchanged(run)
    pair.agreed("active")
    assert "FAKE_EDITED" not in lab.read(WORKER_HOST, f"/etc/tinderbox/{SERVICE}.env")
    assert unchanged(deployed(lab, good))


def test_what_is_removed_leaves_nothing_of_the_pair(lab: Lab, pair: Pair, good: Path) -> None:
    run = by_hand(lab, "remove", good, TINDERBOX_SERVICE=SERVICE)
    assert run.rc == 0, run.text
    for host in HOSTS:
        left = lab.ssh(
            host, f"sudo sh -c 'ls /etc/systemd/system /etc/tinderbox /run/tinderbox | grep {SERVICE}'", check=False
        )
        assert not left.stdout.strip(), left.stdout
