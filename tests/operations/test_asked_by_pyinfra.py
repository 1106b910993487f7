"""deploys/status.py and deploys/logs.py, run by pyinfra over real SSH to this machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from modules.status.answered import answered_file
from tests.operations.command_host import CommandHost, closed_place, command_host
from tests.operations.journal import Journal

NAME = f"asked-by-pyinfra-{os.getpid()}"


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "host")


@pytest.fixture
def host(tmp_path: Path, journal: Journal) -> Iterator[CommandHost]:
    with command_host(tmp_path, f"{journal.bin}:{Path(sys.executable).parent}:{os.environ['PATH']}") as up:
        yield up
    answered_file(NAME).unlink(missing_ok=True)
    if answered_file(NAME).parent.is_dir():
        answered_file(NAME).parent.rmdir()


def run(tmp_path: Path, host: CommandHost, deploy: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Over two hosts, of which one is switched off."""
    fleet = tmp_path / "fleet.yaml"
    ssh = f"{{user: spark, key: {host.key}, known_hosts: {host.known}}}"
    services = "{gpt-oss: {engine: vllm-mxfp4, model: gpt-oss-120b}}"
    hosts = {"spark-1": host.port, "spark-2": closed_place()}
    rows = "".join(f"  {name}: {{address: 127.0.0.1, ssh: {{port: {port}}}}}\n" for name, port in hosts.items())
    fleet.write_text(f"fleet: {NAME}\nssh: {ssh}\ndefaults: {{services: {services}}}\nhosts:\n{rows}")
    told = {"TINDERBOX_FLEET": str(fleet), "PYINFRA_PROGRESS": "off", **environment}
    command = [str(Path(sys.executable).with_name("pyinfra")), "inventory.py", f"deploys/{deploy}.py", "-y"]
    return subprocess.run(
        command, env={**os.environ, **told}, capture_output=True, text=True, check=False, timeout=120
    )  # fmt: skip


def test_the_status_is_that_of_all_hosts(tmp_path: Path, host: CommandHost) -> None:
    done = run(tmp_path, host, "status")
    rows = {line.split()[0]: line.split() for line in done.stdout.splitlines() if line.startswith("spark-")}
    assert rows["spark-1"][:2] == ["spark-1", "gpt-oss"], done.stdout + done.stderr
    assert rows["spark-2"][:4] == ["spark-2", "gpt-oss", "?", "unknown"]
    assert "spark-2: unknown, this machine has never had an answer of it: Could not connect" in done.stdout


def test_the_logs_are_shown_by_time_and_a_host_that_is_not_reached_is_named(
    tmp_path: Path, host: CommandHost, journal: Journal
) -> None:
    for at in range(1, 4):
        journal.log(f"at {at}, HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz", at)
    done = run(tmp_path, host, "logs")
    found = re.findall(r"^\S+ \S+ spark-1 gpt-oss  (.*)$", done.stdout, re.MULTILINE)
    assert found == [f"at {at}, HF_TOKEN=***" for at in range(1, 4)], done.stdout + done.stderr
    assert "spark-2: what it logs is unknown: Could not connect" in done.stderr


def test_a_moment_that_is_none_is_told(tmp_path: Path, host: CommandHost) -> None:
    assert "TINDERBOX_SINCE: 'once' is not understood" in run(tmp_path, host, "logs", TINDERBOX_SINCE="once").stderr
