"""The nightly timer on a lab host that acts as controller of another: placed, run, seen to fail, and taken away."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import yaml

from modules.lab.layout import ROOT
from tests.lab.lab_driver import Lab, Run

pytestmark = [pytest.mark.lab, pytest.mark.long]
CONTROLLER, HOST = "spark-1", "spark-2"
# A space is what systemd has rules of its own for, another one in each setting.
HOME, METRICS = "/home/spark/tinder box", "/var/lib/metrics"
UNIT = "tinderbox-nightly-nights"
SETTINGS = "/etc/tinderbox/network.env"
# Of the environment, what no run of a controller needs.
_LARGE = ("transformers", "numpy*", "mypy*", "*mypyc*", "openai*", "libtorrent*", "tokenizers*", "hf_xet*", "ruff*",
          "fastsafetensors*", "__pycache__", "playwright*", "pandas*", "hadolint*")  # fmt: skip
_FORWARD = """
import socket, sys, threading
def pump(a, b):
    while data := a.recv(65536): b.sendall(data)
    b.shutdown(socket.SHUT_WR)
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    one, _ = server.accept()
    two = socket.create_connection((sys.argv[2], 22))
    for pair in ((one, two), (two, one)): threading.Thread(target=pump, args=pair, daemon=True).start()
"""


@dataclass(frozen=True)
class Controller:
    """A lab host with a checkout. The other host is where the lab's fleet file has it: on its own loopback."""

    lab: Lab

    def run(self, command: str, *, check: bool = True) -> Run:
        """In the checkout, as its user."""
        return self.lab.ssh(CONTROLLER, f"cd '{HOME}' && {command}", check=check)

    def deploy(self, **more: str) -> Run:
        """Have the timer (or not), as `make nightly` does."""
        asked = {
            "TINDERBOX_FLEET": ".lab/nights.yaml",
            "TINDERBOX_NIGHTLY_METRICS": METRICS,
            "TINDERBOX_NIGHTLY_DEPLOY": "deploys/site.py",
            **more,
        }
        words = " ".join(f"{name}={value}" for name, value in asked.items())
        return self.run(f"{words} PYINFRA_PROGRESS=off .venv/bin/pyinfra @local deploys/nightly.py -y --json")

    def night(self) -> Run:
        """What the timer starts, now."""
        return self.run(f"sudo systemctl start {UNIT}.service", check=False)

    def last(self) -> dict[str, object]:
        """What the last one has written down."""
        found: dict[str, object] = json.loads(self.run("cat reports/nights/nightly/last.json").stdout)
        return found

    def figure(self, name: str) -> str:
        """What node exporter would be given."""
        lines = self.run(f"cat {METRICS}/tinderbox_nights.prom").stdout.splitlines()
        (line,) = [line for line in lines if line.startswith(f'tinderbox_{name}{{fleet="nights"}} ')]
        return line.rpartition(" ")[2]


@pytest.fixture(scope="module")
def controller(lab: Lab) -> Iterator[Controller]:
    def change(content: dict[str, object]) -> None:
        hosts, defaults = content["hosts"], content["defaults"]
        assert isinstance(hosts, dict)
        assert isinstance(defaults, dict)
        content |= {"fleet": "nights", "hosts": {HOST: hosts[HOST]}}
        for service in defaults["services"].values():
            service["gate"] = None

    fleet = lab.write_fleet("nights", change)
    port = yaml.safe_load(fleet.read_text())["hosts"][HOST]["ssh"]["port"]
    one = Controller(lab)
    lab.ssh(CONTROLLER, f"mkdir -p '{HOME}'; sudo install -d -o spark {METRICS}")
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    excluded = [f"--exclude={name}" for name in _LARGE]
    words = ["tar", "c", *excluded, *[name for name in tracked if not name.startswith("tests/")], ".venv"]
    _send(lab, words, str(ROOT), HOME)
    _send(lab, ["tar", "c", "nights.yaml", "id_ed25519", "known_hosts", "ca.pem", "apt-key.fingerprint"],
          str(lab.layout.folder), f"{HOME}/.lab")  # fmt: skip
    one.run("ln -sf /usr/bin/python3 .venv/bin/python")
    # As pip and uv write it where a path has a space, which no #! line takes.
    start = """#!/bin/sh\n'''exec' "$(dirname "$0")/python" "$0" "$@"\n' '''\n"""
    _, _, program = (ROOT / ".venv/bin/pyinfra").read_text().partition("\n")
    lab.write(CONTROLLER, f"{HOME}/.venv/bin/pyinfra", start + program)
    lab.write(CONTROLLER, "/opt/forward.py", _FORWARD)
    lab.ssh(CONTROLLER, f"sudo systemd-run --unit=forward python3 /opt/forward.py {port} {lab.address(HOST)}")
    run = lab.converge("deploys/site.py", fleet=fleet)
    assert run.rc == 0, run.text
    yield one
    one.deploy(TINDERBOX_NIGHTLY="off")
    lab.ssh(CONTROLLER, f"sudo systemctl stop forward; sudo rm -rf '{HOME}' {METRICS} /opt/forward.py", check=False)


def _send(lab: Lab, words: list[str], folder: str, to: str) -> None:
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE) as packing:
        argv = ["ssh", "-F", str(lab.layout.ssh_config), CONTROLLER, f"mkdir -p '{to}' && tar x -C '{to}'"]
        subprocess.run(argv, stdin=packing.stdout, check=True)
    assert packing.returncode == 0


def changed(run: Run) -> int:
    return int(run.json["results"]["totals"]["success"])


def test_the_timer_is_placed_run_seen_to_fail_and_taken_away(controller: Controller, lab: Lab) -> None:
    assert changed(controller.deploy()) == 1
    assert changed(controller.deploy()) == 0
    assert f"{UNIT}.timer" in controller.run("systemctl list-timers --all --no-pager").stdout
    verified = controller.run(f"systemd-analyze verify {UNIT}.service {UNIT}.timer 2>&1 | grep {UNIT}", check=False)
    assert verified.stdout == ""

    good = controller.night()
    assert good.rc == 0, controller.run(f"sudo journalctl -n 60 -o cat -u {UNIT}").stdout
    assert controller.last()["status"] == 0
    assert (controller.figure("drift_hosts"), controller.figure("nightly_last_run_status")) == ("0", "0")
    assert float(controller.figure("nightly_last_run_timestamp_seconds")) > 0
    assert controller.figure("nightly_gate_status") == "0"
    assert controller.run("ls reports/nights").stdout.split()

    lab.ssh(HOST, f"sudo rm {SETTINGS}")
    assert controller.night().rc != 0
    assert f"{UNIT}.service" in controller.run("systemctl --failed --no-pager").stdout
    found = controller.last()
    assert found["status"] == 2, found
    assert found["drift"] == {"status": 2, "verdict": "found", "differs": [HOST], "refused": [], "unknown": []}
    assert controller.figure("drift_hosts") == "1"
    said = controller.run(f"sudo journalctl -n 60 -o cat -u {UNIT}").stdout
    assert f"{HOST}: {SETTINGS} is not there" in said
    assert "fleet nights: drift found (differs: spark-2), gate passed" in said

    assert changed(controller.deploy(TINDERBOX_NIGHTLY="off")) == 1
    assert changed(controller.deploy(TINDERBOX_NIGHTLY="off")) == 0
    assert UNIT not in controller.run("systemctl list-unit-files --no-pager; systemctl --failed --no-pager").stdout
