"""One run at a time changes a fleet, on one controller and from several."""

from __future__ import annotations

import json
import shlex
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from modules.converge.lock import held, lock_identity, lock_name
from modules.fleet import load_fleet
from modules.fleet.shared import shared_folder
from modules.lab.layout import ROOT
from modules.operations.hold import _FROM_INPUT
from modules.spec.holder import Holder
from tests.lab.builds import await_job, is_at, stage, write_single
from tests.lab.lab_driver import Lab

pytestmark = pytest.mark.lab
HOST = "spark-2"
PROGRAM = "/usr/local/lib/tinderbox/hold_host.py"
SETTINGS = "/etc/tinderbox/network.env"
ANNA = Holder("anna", "elsewhere", 4711, "deploys/spark.py", time.time(), "/home/anna/office.yaml")


@contextmanager
def held_by(lab: Lab, holder: Holder, lock: str | None = None) -> Iterator[None]:
    """While this lasts, another controller's run holds the host. `lock`: of that controller's own."""
    program = (ROOT / "modules/hostside/hold_host.py").read_bytes()
    document = json.dumps(json.loads(holder.document()) | ({"lock": lock} if lock else {}))
    words = ["sudo", "python3", "-c", _FROM_INPUT, str(len(program)), document]
    argv = ["ssh", "-F", str(lab.layout.ssh_config), HOST, shlex.join(words)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(program)
        child.stdin.flush()
        assert json.loads(child.stdout.readline()) == {"holds": True}
        yield
        child.stdin.close()


@pytest.fixture
def fleet(lab: Lab) -> Path:
    """With something to do on the host."""
    path = lab.fleet_of(HOST)
    assert lab.converge("deploys/site.py", fleet=path).rc == 0
    lab.ssh(HOST, f"sudo rm -f {SETTINGS}")
    return path


def is_settled(lab: Lab) -> bool:
    return lab.ssh(HOST, f"test -e {SETTINGS}", check=False).rc == 0


def test_another_controller_is_told_by_the_host_who_changes_it(lab: Lab, fleet: Path) -> None:
    with held_by(lab, ANNA):
        run = lab.converge("deploys/site.py", fleet=fleet)
        assert run.rc == 1, run.text
        for said in (
            f"{HOST}: FAILED at Site | No other run changes this host",
            "another run changes this host: anna@elsewhere, process 4711, deploys/spark.py of /home/anna/office.yaml",
            "Nothing was changed here. Wait until that run has ended",
        ):
            assert said in run.stderr
        assert not is_settled(lab)
        dry = lab.converge("deploys/site.py", "--drift", fleet=fleet)
        assert dry.rc == 2, dry.text
    run = lab.converge("deploys/site.py", fleet=fleet)
    assert run.rc == 0, run.text
    assert is_settled(lab)
    assert lab.ssh(HOST, "cat /run/tinderbox/run.lock").stdout == ""


def test_what_a_dead_run_of_this_controller_left_holding_a_host_makes_way(lab: Lab, fleet: Path) -> None:
    lock = lock_identity(shared_folder() / lock_name(load_fleet(fleet)))
    with held_by(lab, ANNA, lock):
        run = lab.converge("deploys/site.py", fleet=fleet)
        assert run.rc == 0, run.text
    assert is_settled(lab)


def test_a_second_run_on_this_controller_is_refused_and_looking_is_not(lab: Lab, fleet: Path) -> None:
    with held(load_fleet(fleet), "deploys/spark.py"):
        run = lab.converge("deploys/site.py", fleet=fleet)
        assert run.rc == 1, run.text
        assert "is being changed by another run: " in run.stderr
        assert "Dry runs (--dry, --drift) and reports need no lock" in run.stderr
        assert "Connecting to hosts" not in run.stderr
        assert lab.converge("deploys/site.py", "--dry", fleet=fleet).rc == 2
    assert lab.converge("deploys/site.py", fleet=fleet).rc == 0


def answer_of(lab: Lab, holder: Holder) -> dict[str, Any]:
    """What another controller is told that asks for the host, and goes."""
    command = f"sudo python3 {PROGRAM} {shlex.quote(holder.document().strip())} < /dev/null"
    return dict(json.loads(lab.ssh(HOST, command).stdout))


@pytest.mark.long
@pytest.mark.parametrize("taken", [False, True])
def test_a_run_whose_connection_broke_holds_the_host_again_or_goes_on_no_further(lab: Lab, taken: bool) -> None:
    fleet, _ = write_single(lab, HOST, f"tiny-hold-{taken}".lower(), "RUN sleep 20\n")
    cut = "pkill -x -f 'sshd: spark.*'"
    # Every session ends, and in the other case another controller is there before the run is again.
    words = f"{cut}; sleep 90 | python3 {PROGRAM} '{ANNA.document().strip()}'" if taken else cut
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(stage, lab, fleet)
        await_job(lab, HOST, is_at("sleep"))
        lab.ssh(HOST, f"sudo systemd-run --quiet --collect --unit=anna sh -c {shlex.quote(words)}", check=False)
        if not taken:
            time.sleep(8)
            answer = answer_of(lab, ANNA)
        run = running.result()
    if not taken:
        assert run.rc == 0, run.text
        assert (answer["holds"], answer["holder"]["deploy"]) == (False, "deploys/image.py")
        return
    lab.ssh(HOST, "sudo systemctl stop anna")
    assert run.rc == 1, run.text
    assert "another run changes this host: anna@elsewhere, process 4711" in run.text
    assert "This run's connection broke, and it goes on no further here." in run.text
    again = stage(lab, fleet)
    assert again.rc == 0, again.text
