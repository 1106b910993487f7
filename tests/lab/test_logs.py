"""`python -m modules.logs` on lab hosts: over real journals and a real sshd."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from modules.lab.layout import ROOT
from tests.lab.lab_driver import HEEDING_CTRL_C, Lab, Run
from tests.lab.made_up_service import SERVICE, UNIT, made_up

pytestmark = pytest.mark.lab
HOST = "spark-2"
_PATIENCE_S = 120.0


def logs(lab: Lab, fleet: Path, *words: str) -> Run:
    """To the end."""
    return lab.tinderbox([sys.executable, "-m", "modules.logs", str(fleet), "--patience", "5", *words], timeout_s=120)


def test_what_a_service_logs_is_shown_and_a_host_that_is_not_reached_is_named(lab: Lab) -> None:
    def change(content: dict[str, dict[str, dict[str, dict[str, int]]]]) -> None:
        content["hosts"]["spark-1"]["ssh"]["port"] = 9

    with made_up(lab, HOST):
        run = logs(lab, lab.write_fleet("logs-refused", change), "--since", "5m")
    assert run.rc == 3, run.text
    assert re.search(rf"^\S+ \S+ {HOST} {SERVICE} +it serves$", run.stdout, re.MULTILINE), run.text
    assert re.search(rf" {HOST} {SERVICE} +Started ", run.stdout), run.text
    assert "spark-1: what it logs is unknown: Could not connect" in run.stderr


@pytest.mark.long
def test_followed_over_cuts_nothing_is_lost_or_doubled_and_ctrl_c_leaves_nothing(lab: Lab) -> None:
    fleet, count = lab.fleet_of(HOST), 600
    counting = f"for i in $(seq 1 {count}); do echo count $i; sleep 0.05; done; echo api_key=hunter2hunter2; sleep 600"
    with made_up(lab, HOST) as service:
        unit = f"/etc/systemd/system/{UNIT}"
        lab.write(HOST, unit, f"[Service]\nExecStart=/bin/sh -c '{counting.replace('%', '%%')}'\n")
        with subprocess.Popen(
            [*HEEDING_CTRL_C, sys.executable, "-m", "modules.logs", "--follow", "--lines", "0", str(fleet)], cwd=ROOT,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        ) as process:  # fmt: skip
            try:
                _await(lambda: "journalctl" in service.run("pgrep -a journalctl || true"), "nobody follows")
                service.run(f"systemctl daemon-reload; systemctl restart {UNIT}")
                for _ in range(3):
                    time.sleep(4)
                    # The connection, and not what runs at its end.
                    kill = ["docker", "exec", lab.layout.container(HOST), "pkill", "-KILL", "-f", "sshd: spark@notty"]
                    subprocess.run(kill, check=True, capture_output=True)
                said = []
                assert process.stdout is not None
                for line in process.stdout:
                    said.append(line.rstrip("\n"))
                    if "api_key" in line:
                        break
                process.send_signal(signal.SIGINT)
                _, err = process.communicate(timeout=30)
            finally:
                process.kill()
        _await(lambda: not service.run("pgrep journalctl || true").strip(), "journalctl goes on")
    assert process.returncode == 130
    assert [int(found[1]) for line in said if (found := re.search(r"count (\d+)$", line))] == list(range(1, count + 1))
    assert said[-1].endswith("api_key=***")
    assert err.count("it is read again, from where it was left") >= 1, err


@pytest.mark.long
def test_the_deploy_shows_the_same(lab: Lab) -> None:
    fleet = lab.fleet_of(HOST)
    with made_up(lab, HOST):
        command = ["env", "TINDERBOX_SINCE=5m", "pyinfra", "inventory.py", "deploys/logs.py", "-y"]
        run = lab.tinderbox(command, fleet=fleet)
    assert run.rc == 0, run.text
    assert re.search(rf"^\S+ \S+ {HOST} {SERVICE} +it serves$", run.stdout, re.MULTILINE), run.text


def _await(look: object, told: str) -> None:
    give_up = time.monotonic() + _PATIENCE_S
    while not look():  # type: ignore[operator]
        assert time.monotonic() < give_up, told
        time.sleep(0.5)
