"""The program that collects a host's evidence, with stand-ins for the programs that it asks."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from modules.diagnosis import bundle_of
from modules.hostside import gather_evidence
from modules.hostside.gather_evidence import HEAD_BYTES, TAIL_BYTES, bounded, gather

SECRET = "hf_4f9dXq2LrT7vBn814f9dXq2L"
PROGRAMS = {
    "docker": f'case "$1" in logs) echo "engine with {SECRET}"; echo "an error" >&2;; version) echo 29.2.1;; esac',
    "journalctl": (
        'case "$*" in *--dmesg*) echo "spark-1 kernel: NVRM: loading";; *earlyoom*) echo "earlyoom v1.7";; '
        '*tinderbox-gpt*) echo "Started tinderbox-gpt.service";; esac'
    ),
    "nvidia-smi": 'echo "name, driver_version"; echo "NVIDIA GB10, 580.142"',
    "systemctl": 'case "$1" in show) echo ActiveState=failed; echo NRestarts=2;; *) echo "systemd 255 (255.4)";; esac',
    "nvidia-ctk": "echo NVIDIA Container Toolkit CLI version 1.18.0",
    "uname": "echo 6.17.0-1029-nvidia",
    "dmesg": 'echo "dmesg: read kernel buffer failed: Operation not permitted"; exit 1',
}


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Programs that answer, and an empty state directory."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, script in PROGRAMS.items():
        install(programs, name, script)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setattr(gather_evidence, "JOBS", tmp_path / "jobs")
    monkeypatch.setattr(gather_evidence, "LEDGER", tmp_path / "ledger")
    monkeypatch.setattr(gather_evidence, "SETTINGS", tmp_path / "etc")
    monkeypatch.setattr(gather_evidence, "_PAUSE_S", 0)
    return tmp_path


def install(programs: Path, name: str, script: str) -> None:
    path = programs / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def logs(service: str | None = "gpt") -> dict[str, dict[str, str | None]]:
    return {log["name"]: log for log in gather(service)["logs"]}


def test_everything_is_gathered_and_masked(host: Path) -> None:
    document = json.loads(json.dumps(gather("gpt")))

    found = {log["name"]: log for log in document["logs"]}
    assert list(found) == ["container", "journal", "kernel", "earlyoom"]
    assert found["container"]["text"].splitlines() == ["engine with ***", "an error"]
    assert found["journal"]["text"].strip() == "Started tinderbox-gpt.service"
    assert document["unit"] == {"ActiveState": "failed", "NRestarts": "2"}
    assert document["versions"]["docker"] == "29.2.1"
    assert document["versions"]["kernel"] == "6.17.0-1029-nvidia"
    assert len(document["gpu"]["samples"]) == 3
    assert "MemTotal" in document["files"]["/proc/meminfo"]
    assert bundle_of(document).failed


def test_a_key_that_the_host_has_made_is_hidden_wherever_it_stands(host: Path) -> None:
    settings = host / "etc"
    settings.mkdir()
    (settings / "gpt.key.env").write_text("VLLM_API_KEY=error\n")
    # Too short to be one: hiding it would hide the log.
    assert logs()["container"]["text"] == "engine with ***\nan error\n"
    (settings / "gpt.key.env").write_text("VLLM_API_KEY=engine with\n")
    assert logs()["container"]["text"] == "*** ***\nan error\n"


def test_of_the_host_alone_no_service_is_asked(host: Path) -> None:
    document = gather(None)

    assert [log["name"] for log in document["logs"]] == ["kernel", "earlyoom"]
    assert document["unit"] == {}


def test_a_kernel_log_that_may_not_be_read_has_a_trouble(host: Path) -> None:
    install(host / "bin", "journalctl", "echo '-- No entries --'; exit 1")

    found = logs()["kernel"]

    assert found["text"] == ""
    assert "Operation not permitted" in str(found["trouble"])


def test_a_missing_container_is_no_trouble_and_a_dead_daemon_is(host: Path) -> None:
    install(host / "bin", "docker", 'echo "Error response from daemon: No such container: tinderbox-gpt"; exit 1')
    assert "container" not in logs()

    install(
        host / "bin", "docker", 'echo "Cannot connect to the Docker daemon at unix:///var/run/docker.sock."; exit 1'
    )
    assert "Cannot connect" in str(logs()["container"]["trouble"])


def test_a_missing_program_is_a_trouble(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("nvidia-smi", "journalctl"):
        (host / "bin" / name).unlink()
    monkeypatch.setenv("PATH", str(host / "bin"))

    assert gather("gpt")["gpu"] is None
    assert logs()["journal"]["trouble"] == "journalctl is not installed"


def test_the_last_failed_start_is_told(host: Path) -> None:
    ledger = host / "ledger" / "gpt"
    ledger.mkdir(parents=True)
    (ledger / "abc.failed.log").write_text(f"RuntimeError with VLLM_API_KEY={SECRET}")

    os.utime(ledger / "abc.failed.log", (1_795_000_000, 1_795_000_000))

    assert logs()["start that failed at 2026-11-18 11:06 UTC"]["text"] == "RuntimeError with VLLM_API_KEY=***"


@pytest.mark.parametrize(("state", "asked"), [("active", True), ("failed", False)])
def test_only_a_server_that_is_up_is_asked_for_its_own_start_alone(host: Path, state: str, asked: bool) -> None:
    install(host / "bin", "systemctl", f"echo ActiveState={state}; echo InvocationID=e27281")
    install(host / "bin", "journalctl", 'echo "$*"')

    assert ("_SYSTEMD_INVOCATION_ID=e27281" in str(logs()["journal"]["text"])) == asked


def test_failed_jobs_are_told_by_what_they_do(host: Path) -> None:
    for name, state in (
        ("image-vllm-1", "failed"),
        ("weights-x", "succeeded"),
        ("start-other-1", "failed"),
        ("start-gpt-1", "failed"),
        ("unheard-of-1", "failed"),
    ):
        directory = host / "jobs" / name
        directory.mkdir(parents=True)
        (directory / "status.json").write_text(json.dumps({"state": state}))
        (directory / "log").write_text(f"log of {name}")

    found = {name: log["kind"] for name, log in logs().items() if name.startswith("job ")}

    assert found == {"job image-vllm-1": "build", "job start-gpt-1": "engine"}


def test_a_long_log_keeps_its_ends_in_whole_lines() -> None:
    text = "".join(f"line {number}\n" for number in range(60_000))
    short = bounded(text)

    assert len(short) <= HEAD_BYTES + TAIL_BYTES + 60
    lines = short.splitlines()
    assert lines[0] == "line 0"
    assert lines[-1] == "line 59999"
    assert sum("left out" in line for line in lines) == 1
    assert all(line.startswith(("line ", "…")) for line in lines)
    assert bounded("short\n") == "short\n"
