"""`python -m modules.status` on lab hosts: it tells what is so, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from modules.status.report import HostStatus, ServiceStatus, StatusReport, Stranger
from tests.lab import fake_release
from tests.lab.lab_driver import Lab, Run
from tests.lab.made_up_service import GATED, PORT, RELEASE, RUNNING, SERVICE, UNIT, WAITING, made_up
from tests.lab.served import Served

pytestmark = pytest.mark.lab
HOST = "spark-2"
# Nothing listens there.
_CLOSED_PORT = 9
# A lab's host shares its cores with all others: one that hangs says nothing for far longer.
_PATIENT = ("--patience", "5", "--answer", "60")


def status(lab: Lab, fleet: Path, *words: str) -> Run:
    """Run it."""
    argv = [sys.executable, "-m", "modules.status", str(fleet), *_PATIENT, *words]
    run = lab.tinderbox(argv, fleet=fleet, timeout_s=120)
    assert run.rc == 0, run.text
    return run


def told(lab: Lab, fleet: Path) -> dict[str, HostStatus]:
    """Host → what it says of it."""
    report = StatusReport.model_validate_json(status(lab, fleet, "--json").stdout)
    return {host.name: host for host in report.hosts}


def told_of(lab: Lab, fleet: Path) -> tuple[HostStatus, ServiceStatus]:
    """Of the host that is tried on, and its service."""
    host = told(lab, fleet)[HOST]
    (service,) = (one for one in host.services if one.name == SERVICE)
    return host, service


def test_each_state_is_told_as_it_is(lab: Lab) -> None:
    fleet = lab.fleet_of(HOST)
    installed = lab.ssh(HOST, "test -d /usr/local/lib/tinderbox", check=False).rc == 0
    with made_up(lab, HOST) as service:
        host, found = told_of(lab, fleet)
        assert (host.answers, host.root, host.strangers, host.programs == "none") == (True, True, (), not installed)
        assert host.gpu is not None
        assert (host.gpu.simulated, host.gpu.temperature_c, host.gpu.clock_mhz) == (True, 43, 2418)
        assert host.memory is not None
        assert host.available is not None
        assert (found.state, found.deployed, found.release, found.standing) == ("running", True, RELEASE, "good")
        assert (found.running, found.waiting, found.kv_percent) == (RUNNING, WAITING, 25)
        assert found.tokens_s is not None
        assert found.tokens_s > 0
        assert found.used is not None
        assert found.gate is not None
        assert (found.gate.verdict, found.gate.figure, found.gate.finished) == ("PASS", 54.2, GATED)
        assert found.watchdog is not None
        assert (found.watchdog.active, found.watchdog.misses) == (True, 0)

        service.run(f"systemctl stop {UNIT}")
        holder = f"systemd-run --unit=squatter python3 -m http.server --bind 127.0.0.1 {PORT}"
        service.run(f"{holder}; for i in 1 2 3 4 5; do curl -s 127.0.0.1:{PORT} > /dev/null && break; sleep 1; done")
        with lab.gpu(HOST, compute_apps=[[424242, "comfy", 2048]]):
            host, found = told_of(lab, fleet)
        service.run("systemctl stop squatter")
        assert (found.state, found.tokens_s, found.why) == ("stopped", None, None)
        on_gpu, at_port = host.strangers
        assert on_gpu == Stranger(where="GPU", pid=424242, name="comfy", memory=2048 * 1024**2)
        assert (at_port.where, at_port.name) == (f"port {PORT}", "python3")

        service.fail()
        _, found = told_of(lab, fleet)
        assert (found.state, found.tokens_s) == ("failed", None)
        assert "exit-code" in str(found.why)

        with lab.paused(HOST):
            run = status(lab, fleet)
        assert f"{HOST}: unknown, it last answered at " in run.stdout
        assert "it takes connections, and says nothing within 5 s" in run.stdout
        assert not {"running", "stopped", "failed"} & set(run.stdout.split(f"{HOST}:")[0].split())


@pytest.mark.long
def test_a_host_that_refuses_is_unknown_beside_others_that_answer(lab: Lab) -> None:
    def change(content: dict[str, dict[str, dict[str, dict[str, int]]]]) -> None:
        content["hosts"]["spark-1"]["ssh"]["port"] = _CLOSED_PORT

    hosts = told(lab, lab.write_fleet("status-refused", change))
    assert (hosts["spark-1"].answers, hosts[HOST].answers) == (False, True)
    assert f"Unable to connect to port {_CLOSED_PORT}" in str(hosts["spark-1"].trouble)
    assert {one.state for one in hosts["spark-1"].services} == {"unknown"}


@pytest.mark.long
def test_where_sudo_asks_for_a_password_less_is_known_and_none_of_it_is_wrong(lab: Lab) -> None:
    fleet = lab.fleet_of(HOST)
    container = lab.layout.container(HOST)
    rule = "/etc/sudoers.d/spark"
    with made_up(lab, HOST):
        as_root = ["docker", "exec", container, "sh", "-c"]
        subprocess.run([*as_root, f"cp {rule} /root/rule; echo 'spark ALL=(ALL) ALL' > {rule}"], check=True)
        try:
            host, found = told_of(lab, fleet)
        finally:
            subprocess.run([*as_root, f"cp /root/rule {rule}"], check=True)
    assert host.root is False
    assert (found.state, found.release, found.running) == ("running", RELEASE, RUNNING)


@pytest.mark.long
def test_a_bare_host_and_one_of_another_version_say_so(lab: Lab) -> None:
    fleet, home = lab.fleet_of(HOST), "/usr/local/lib/tinderbox"
    lab.ssh(HOST, f"sudo mv {home} {home}.aside", check=False)
    try:
        assert told(lab, fleet)[HOST].programs == "none"
        assert "nothing of Tinderbox is deployed here yet" in status(lab, fleet).stdout
        lab.ssh(HOST, f"sudo mkdir {home}; echo pass | sudo tee {home}/ledger.py")
        assert told(lab, fleet)[HOST].programs == "other"
    finally:
        lab.ssh(HOST, f"sudo rm -rf {home}; sudo mv {home}.aside {home}", check=False)


@pytest.mark.long
def test_a_release_in_its_container_is_told_as_its_host_knows_it(lab: Lab) -> None:
    fleet = fake_release.fleet_of(lab, HOST, "status", **fake_release.FAST)
    run = fake_release.deployed(lab, fleet)
    assert run.rc == 0, run.text
    server = Served(lab, fleet, HOST)
    try:
        with _asked_all_the_time(lab, server):
            host = told(lab, fleet)[HOST]
        (found,) = (one for one in host.services if one.name == fake_release.SERVICE)
        assert (host.programs, found.state, found.release, found.standing) == (
            "same", "running", server.release(), "good",
        )  # fmt: skip
        assert found.running is not None
        assert found.tokens_s is not None
        assert found.used is not None
        assert found.used > 0
        assert found.gate is not None
        assert (found.gate.verdict, found.gate.metric) == ("PASS", fake_release.DECODE)
        assert found.watchdog is not None
        assert found.watchdog.active
        # Its engine has the port, in a container that is ours.
        assert host.strangers == ()

        lab.ssh(HOST, f"sudo systemctl stop {server.unit}")
        busy = "sudo docker run --rm -d --name squatter --network host --entrypoint python3"
        image = lab.ssh(HOST, "sudo docker image ls -q tinderbox/fake-engine").stdout.split()[0]
        lab.ssh(HOST, f"{busy} {image} -m http.server --bind 127.0.0.1 {fake_release.PORT}")
        (stranger,) = told(lab, fleet)[HOST].strangers
        assert (stranger.where, stranger.container) == (f"port {fake_release.PORT}", "squatter")
    finally:
        lab.ssh(HOST, "sudo docker rm --force squatter", check=False)
        lab.ssh(HOST, f"sudo systemctl start {server.unit}", check=False)


@contextmanager
def _asked_all_the_time(lab: Lab, server: Served) -> Iterator[None]:
    """While this lasts, the server generates."""
    body = {"model": server.plan.model.served_as, "messages": [{"role": "user", "content": "Hello."}]}
    asked = json.dumps({**body, "max_tokens": 4000, "ignore_eos": True, "stream": True})
    url = f"http://127.0.0.1:{server.plan.service.port}/v1/chat/completions"
    argv = ["ssh", "-F", str(lab.layout.ssh_config), server.host, f"curl -sS --json '{asked}' {url} > /dev/null"]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL) as asking:
        try:
            yield
        finally:
            asking.terminate()


@pytest.mark.long
def test_the_deploy_shows_the_same_and_changes_nothing(lab: Lab, tmp_path: Path) -> None:
    fleet, counted = lab.fleet_of(HOST), tmp_path / "counted"
    with made_up(lab, HOST):
        command = ["env", f"ROUND_TRIPS={counted}", sys.executable, "-m", "benchmarks.counted_pyinfra", "--yes"]
        run = lab.tinderbox([*command, "inventory.py", "deploys/status.py"], fleet=fleet)
    assert run.rc == 0, run.text
    assert int(counted.read_text()) == 1
    (row,) = [line for line in run.stdout.splitlines() if line.startswith(f"{HOST} ")]
    assert row.split()[:4] == [HOST, SERVICE, RELEASE[:8], "running"]
