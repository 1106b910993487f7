"""`python -m modules.status` as people call it, over real SSH to this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from modules.reporting.measured import ROOT
from modules.status.answered import answered_file, last_answers, note_answers
from tests.operations.command_host import CommandHost, closed_place, command_host

SERVICES = "{gpt-oss: {engine: vllm-mxfp4, model: gpt-oss-120b, port: PORT}}"
# Of machines that have much else to do.
_PATIENT = ("--patience", "5", "--answer", "60")


def fleet_file(path: Path, name: str, host: CommandHost, **ports: int) -> Path:
    """A fleet of hosts on this machine; nothing listens where their service would."""
    rows = "".join(f"  {one}: {{address: 127.0.0.1, ssh: {{port: {port}}}}}\n" for one, port in ports.items())
    ssh = f"{{user: spark, key: {host.key}, known_hosts: {host.known}}}"
    services = SERVICES.replace("PORT", str(closed_place()))
    path.write_text(f"fleet: {name}\nssh: {ssh}\ndefaults: {{services: {services}}}\nhosts:\n{rows}")
    return path


@pytest.fixture
def host(tmp_path: Path) -> Iterator[CommandHost]:
    with command_host(tmp_path, f"{Path(sys.executable).parent}:{os.environ['PATH']}") as up:
        yield up


@pytest.fixture
def name() -> Iterator[str]:
    """Of a fleet of which this machine remembers nothing, before and after."""
    chosen = f"status-test-{os.getpid()}"
    yield chosen
    for fleet in (chosen, f"{chosen}-two"):
        answered_file(fleet).unlink(missing_ok=True)
        if answered_file(fleet).parent.is_dir():
            answered_file(fleet).parent.rmdir()


def status(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "modules.status", *map(str, words), *_PATIENT]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_hosts_of_two_fleet_files_are_told_together(tmp_path: Path, host: CommandHost, name: str) -> None:
    one = fleet_file(tmp_path / "one.yaml", name, host, up=host.port, off=closed_place())
    two = fleet_file(tmp_path / "two.yaml", f"{name}-two", host, up=host.port)

    done = status(one, two, "--json")

    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["schema_version"] == 1
    assert [(one["fleet"], one["name"], one["answers"]) for one in report["hosts"]] == [
        (name, "up", True), (name, "off", False), (f"{name}-two", "up", True),
    ]  # fmt: skip
    assert report["hosts"][1]["services"][0]["state"] == "unknown"
    # What this machine is, a host would have told.
    assert report["hosts"][0]["memory"] > 0
    assert last_answers(name) == {"up": report["hosts"][0]["seen"]}


def test_the_screen_shows_each_and_why_one_is_unknown(tmp_path: Path, host: CommandHost, name: str) -> None:
    fleet = fleet_file(tmp_path / "one.yaml", name, host, up=host.port, off=closed_place())
    note_answers(name, {"off": "2026-11-29T20:00:00Z"})

    done = status(fleet)

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2 hosts, 1 unknown, ")
    (row,) = [line for line in done.stdout.splitlines() if line.startswith("off ")]
    assert row.split()[:4] == ["off", "gpt-oss", "?", "unknown"]
    assert "off: unknown, it last answered at 2026-11-29T20:00:00Z: Could not connect" in done.stdout
    assert status(fleet, "--limit", "up").stdout.startswith("1 host, ")


@pytest.mark.parametrize("words", [["--limit", "none-such"], []])
def test_what_is_wrong_is_refused_before_any_host_is_asked(
    tmp_path: Path, host: CommandHost, name: str, words: list[str]
) -> None:
    fleet = fleet_file(tmp_path / "one.yaml", name, host, up=host.port)
    if not words:
        fleet.write_text(fleet.read_text().replace("hosts:", "hots:"))
    done = status(fleet, *words)
    assert (done.returncode, done.stdout) == (1, "")
    assert str(fleet) in done.stderr
    assert not host.machine.transports


def test_it_is_drawn_again_over_the_same_connection_until_ctrl_c(tmp_path: Path, host: CommandHost, name: str) -> None:
    fleet = fleet_file(tmp_path / "one.yaml", name, host, up=host.port)
    command = ["env", "--default-signal=INT", sys.executable, "-m", "modules.status", str(fleet), "--watch", "0.1"]
    with subprocess.Popen([*command, *_PATIENT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(3):
            while not process.stdout.readline().startswith("up "):
                assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "")
    assert len(host.machine.transports) == 1


def test_what_is_remembered_of_hosts_is_kept_for_all_of_them(tmp_path: Path) -> None:
    assert last_answers("office", tmp_path) == {}
    note_answers("office", {"a": "2026-11-29T20:00:00Z"}, tmp_path)
    note_answers("office", {"b": "2026-11-29T21:00:00Z"}, tmp_path)
    assert last_answers("office", tmp_path) == {"a": "2026-11-29T20:00:00Z", "b": "2026-11-29T21:00:00Z"}
    answered_file("office", tmp_path).write_text("[")
    assert last_answers("office", tmp_path) == {}
    assert answered_file("office").is_relative_to(ROOT)
