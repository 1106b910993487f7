"""A host's errors are kept for the end of a run, and those of its connection say what to do."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyinfra import logger

from modules.fleet import load_fleet
from modules.reporting import host_errors
from modules.reporting.connection_advice import advice
from modules.reporting.host_errors import ERRORS_FILE, note_foreseen, read_errors, watch_errors

FLEET = """\
fleet: office
ssh: {user: ubuntu}
hosts:
  spark-1: {address: 10.0.0.11, ssh: {port: 2222, key: key, known_hosts: hosts}}
  spark-2: {address: spark.example.net}
  lab: {address: 127.0.0.1, settings: {hardware: {simulated: true}}}
"""


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "key").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    (tmp_path / "hosts").touch()
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET)
    monkeypatch.setenv("TINDERBOX_FLEET", str(path))
    monkeypatch.chdir(tmp_path)
    return path


@pytest.fixture
def errors(tmp_path: Path, fleet: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "errors.jsonl"
    monkeypatch.setenv(ERRORS_FILE, str(path))
    before = list(logger.handlers)
    watch_errors()
    watch_errors()
    assert len(logger.handlers) == len(before) + 1
    yield path
    logger.handlers[:] = before


def told(said: str, host: str, fleet: Path) -> str:
    found = advice(said, load_fleet(fleet).hosts[host], fleet)
    assert found is not None
    return found


def test_tracebacks_of_the_ssh_client_are_not_printed(errors: Path) -> None:
    script = (
        "import logging; from modules.reporting.host_errors import watch_errors; watch_errors(); "
        "logging.getLogger('paramiko.transport').error('Traceback (most recent call last):')"
    )
    root = Path(__file__).resolve().parents[2]

    done = subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True)

    assert done.stderr == ""


@pytest.mark.parametrize(("cause", "shown"), [(FileNotFoundError(2, "none"), False), (ValueError("bad line"), True)])
def test_known_hosts_that_are_not_there_yet_are_no_trouble(
    cause: Exception, shown: bool, errors: Path, caplog: pytest.LogCaptureFixture
) -> None:
    logger.warning("Failed to load host keys from %s: %s", "known_hosts", cause)

    assert bool(caplog.records) is shown


def test_the_errors_of_a_host_are_kept_with_the_operation_that_was_under_way(
    errors: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="pyinfra"):
        logger.error("[\x1b[1mspark-2\x1b[0m] \x1b[31mbefore all\x1b[0m")
        logger.info("--> Starting operation: Site | Programs for the host ")
        logger.info("[spark-2] fine")
        logger.error("[spark-2] 100 % wrong")
        logger.error("[spark-2] Error: executed 1 commands")
        logger.error("of no host")
    assert read_errors(errors) == {
        "spark-2": [
            {"host": "spark-2", "operation": "", "said": "before all"},
            {"host": "spark-2", "operation": "Site | Programs for the host", "said": "100 % wrong"},
        ]
    }


def test_what_pyinfra_adds_to_a_hosts_own_words_is_left_out(
    errors: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_errors, "_here", {})
    with caplog.at_level(logging.INFO, logger="pyinfra"):
        logger.error("[spark-2] wrong")
        logger.error("[spark-2] Error: executed 2 commands")
        # Nobody has said why.
        logger.error("[\x1b[1mspark-3\x1b[0m] Error: executed 2 commands")
        logger.warning("--> \x1b[1mpyinfra error in state.py line 408\x1b[0m: No hosts remaining!")

    shown = [record.getMessage().split("] ")[-1] for record in caplog.records]
    assert shown == ["wrong", "Error: executed 2 commands"]


def test_what_is_known_before_a_run_is_kept_with_its_operation(errors: Path) -> None:
    note_foreseen("spark-2", "Engine | Service gpt-oss", "not again")
    assert read_errors(errors) == {
        "spark-2": [{"host": "spark-2", "operation": "Engine | Service gpt-oss", "said": "not again", "foreseen": True}]
    }


def test_what_to_do_is_told_behind_the_error_and_once_a_host(errors: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, logger="pyinfra"):
        for _ in range(2):
            logger.error("[spark-2] Could not connect (timed out)")
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 3
    assert sum("nothing lets us in at spark.example.net port 22" in line for line in lines) == 1
    assert [error["said"].split()[0] for error in read_errors(errors)["spark-2"]] == ["Could", "nothing", "Could"]


def test_errors_of_a_host_that_the_fleet_does_not_have_are_kept_too(errors: Path) -> None:
    logger.error("[@local] Could not connect (odd)")
    assert list(read_errors(errors)) == ["@local"]


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "errors.jsonl"
    assert read_errors(path) == {}
    path.write_text('{"host": "a", "operation": "", "said": "x"}\n{"host": "b", "oper')
    assert list(read_errors(path)) == ["a"]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            "Could not resolve hostname ([Errno -2])",
            ["10.0.0.11", "correct the address of hosts.spark-1 in fleet.yaml"],
        ),
        (
            "Could not connect (timed out)",
            ["10.0.0.11 port 2222", "is it on", "ssh.port of hosts.spark-1 in fleet.yaml"],
        ),
        ("Authentication error (username=ubuntu)", ["ubuntu is not let in with key key", "ssh-copy-id -i key -p 2222"]),
        ("SSH host key error (Host key for 10.0.0.11 does not match.)", ["ssh-keygen -R '[10.0.0.11]:2222' -f hosts"]),
        ("SSH error (StrictPolicy: No host key for 10.0.0.11)", ["hosts has no key", "ssh-keyscan -p 2222 10.0.0.11"]),
        ("SSH error (No existing session)", ["no sshd in order", "ssh -i key -p 2222", "ubuntu@10.0.0.11"]),
        ("EOF error ()", ["passphrase", "ssh-add"]),
    ],
)
def test_each_way_not_to_reach_a_host_has_its_advice(said: str, words: list[str], fleet: Path) -> None:
    found = told(said, "spark-1", fleet)
    assert [word for word in words if word not in found] == []


def test_defaults_are_left_out_of_commands(fleet: Path) -> None:
    assert told("Could not connect (refused)", "spark-2", fleet).endswith("try: ssh ubuntu@spark.example.net")
    assert "your SSH agent's and usual keys" in told("Authentication error ()", "spark-2", fleet)
    assert "-R spark.example.net -f" in told("SSH host key error ()", "spark-2", fleet)


def test_a_lab_host_is_brought_up_by_the_lab(fleet: Path) -> None:
    assert "make lab-up" in told("Could not connect (refused)", "lab", fleet)


def test_other_errors_speak_for_themselves(fleet: Path) -> None:
    host: Any = load_fleet(fleet).hosts["spark-1"]
    assert advice("preflight blocked: driver", host, fleet) is None
