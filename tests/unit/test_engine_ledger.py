"""The ledger on a host."""

from __future__ import annotations

import json
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from modules.hostside import start_container
from modules.hostside.ledger import Ledger, install, judge, restore


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What systemctl is asked."""
    seen: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda command, **_: seen.append(command))
    return seen


def request(tmp_path: Path, release: str = "r1") -> dict[str, Any]:
    return {
        "service": "gpt-oss",
        "id": release,
        "release": {"image": release},
        "files": [
            {"path": str(tmp_path / "etc/unit"), "content": f"unit of {release}\n", "secret": False},
            {"path": str(tmp_path / "etc/secret.env"), "content": "KEY=hidden\n", "secret": True},
        ],
        "directories": [str(tmp_path / "caches/vllm")],
    }


def test_installing_writes_files_and_notes_the_release(tmp_path: Path, commands: list[list[str]]) -> None:
    install(request(tmp_path), tmp_path)
    assert (tmp_path / "etc/unit").read_text() == "unit of r1\n"
    assert stat.S_IMODE((tmp_path / "etc/secret.env").stat().st_mode) == 0o600
    assert (tmp_path / "caches/vllm").is_dir()
    assert Ledger("gpt-oss", tmp_path).linked("current") == "r1"
    assert [words[1] for words in commands] == ["daemon-reload", "enable"]


def test_no_secret_enters_the_ledger(tmp_path: Path, commands: list[list[str]]) -> None:
    install(request(tmp_path), tmp_path)
    assert commands
    assert "hidden" not in "".join(path.read_text() for path in (tmp_path / "ledger").rglob("*.json"))


def test_restoring_puts_the_files_back_and_leaves_secrets(tmp_path: Path, commands: list[list[str]]) -> None:
    install(request(tmp_path, "r1"), tmp_path)
    install(request(tmp_path, "r2"), tmp_path)
    restore("gpt-oss", "r1", tmp_path)
    assert (tmp_path / "etc/unit").read_text() == "unit of r1\n"
    assert (tmp_path / "etc/secret.env").read_text() == "KEY=hidden\n"
    assert Ledger("gpt-oss", tmp_path).linked("current") == "r1"
    assert len(commands) == 6


def test_what_is_not_there_can_not_be_restored(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="missing or unreadable"):
        restore("gpt-oss", "r9", tmp_path)


def test_the_past_of_a_release_is_kept(tmp_path: Path, commands: list[list[str]]) -> None:
    ledger = Ledger("gpt-oss", tmp_path)
    install(request(tmp_path), tmp_path)
    ledger.mark("r1", "ready")
    install(request(tmp_path), tmp_path)
    entry = ledger.entry("r1")
    assert entry is not None
    assert [event["event"] for event in entry["events"]] == ["installed", "ready", "installed"]
    assert commands


@pytest.mark.parametrize(("good", "last_good"), [(True, "r1"), (False, None)])
def test_a_judgement_decides_what_is_good(
    tmp_path: Path, commands: list[list[str]], good: bool, last_good: str | None
) -> None:
    install(request(tmp_path), tmp_path)
    result = tmp_path / "gates/gpt-oss/r1.json"
    result.parent.mkdir(parents=True)
    result.write_text('{"report": 1}')
    judgement = {"verdict": "PASS" if good else "FAIL", "thresholds": "t"}
    judge({"service": "gpt-oss", "id": "r1", "judgement": judgement, "good": good}, tmp_path)
    stored = json.loads(result.read_text())
    assert stored["report"] == 1
    assert stored["judgement"]["thresholds"] == "t"
    assert Ledger("gpt-oss", tmp_path).linked("last-good") == last_good
    assert commands


def test_only_devices_that_are_there_are_passed_on() -> None:
    command = ["docker", "run", "--rm", "image"]
    assert start_container.with_devices(command, ["/dev/null", "/dev/no-such-node"]) == [
        *["docker", "run", "--device", "/dev/null", "--rm", "image"],
    ]
