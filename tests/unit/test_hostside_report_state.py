"""What a host tells for a report."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from modules.hostside import report_state
from modules.hostside.ledger import Ledger, point
from modules.hostside.report_state import NEWEST, checkpoint, measurements, releases, service

WISH = {"model": "/nowhere", "file": None}


def entry(root: Path, release: str, at: str, *events: str) -> None:
    path = root / "ledger" / "gpt-oss" / f"{release}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    told = [{"at": at, "event": "installed"}, *({"at": at, "event": event, "note": "PASS"} for event in events)]
    path.write_text(json.dumps({"id": release, "release": {"image": "i", "commit": "c", "unit": "u"}, "events": told}))


def gate(root: Path, release: str, finished: str) -> None:
    path = root / "gates" / "gpt-oss" / f"{release}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"release": release, "finished": finished, "samples": {"clock_mhz": [1.0]}}))


@pytest.fixture(autouse=True)
def no_systemd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_state, "unit_state", lambda _: {"ActiveState": "active", "SubState": "running"})


def test_releases_come_by_their_age_with_what_happened_to_them(tmp_path: Path) -> None:
    entry(tmp_path, "bbb", "2026-01-01T00:00:00Z", "good")
    entry(tmp_path, "aaa", "2026-02-01T00:00:00Z")
    point(tmp_path / "ledger/gpt-oss/current", "aaa.json")
    (tmp_path / "ledger/gpt-oss/cut.json").write_text('{"id": ')
    found = releases(Ledger("gpt-oss", tmp_path))
    assert [one["id"] for one in found] == ["bbb", "aaa"]
    assert [event["event"] for event in found[0]["events"]] == ["installed", "good"]
    # Texts of units and environments stay on the host.
    assert set(found[0]) == {"id", "image", "commit", "events"}


def test_only_the_newest_and_the_one_in_force_keep_their_samples(tmp_path: Path) -> None:
    for release, month in (("old", 1), ("force", 2), ("failed", 3), ("newest", 4)):
        gate(tmp_path, release, f"2026-0{month}-01T00:00:00Z")
    (tmp_path / "gates/gpt-oss/cut.json").write_text("{")
    found = measurements(tmp_path / "gates" / "gpt-oss", "force")
    assert [one["release"] for one in found] == ["old", "force", "failed", "newest"]
    assert [bool(one["samples"]) for one in found] == [False, True, False, True]


def test_what_is_told_is_bounded(tmp_path: Path) -> None:
    for index in range(NEWEST + 5):
        gate(tmp_path, f"r{index:03}", f"2026-01-01T00:{index // 60:02}:{index % 60:02}Z")
    found = measurements(tmp_path / "gates" / "gpt-oss", None)
    assert (len(found), found[0]["release"]) == (NEWEST, "r005")


def test_a_service_that_is_not_there_is_told_as_such(tmp_path: Path) -> None:
    found = service("gpt-oss", WISH, tmp_path)
    assert (found["current"], found["last_good"], found["checkpoint"]) == (None, None, None)
    assert (found["releases"], found["measurements"]) == ([], [])


@pytest.mark.parametrize("content", [None, b"", b"{", b"\xff" * 40])
def test_a_checkpoint_that_is_not_whole_ends_nothing(tmp_path: Path, content: bytes | None) -> None:
    snapshot = tmp_path / "snapshots" / "c"
    assert checkpoint(tmp_path, "c", None) is None
    snapshot.mkdir(parents=True)
    if content is not None:
        (snapshot / "model.safetensors").write_bytes(content)
        (snapshot / "config.json").write_bytes(content)
    found = checkpoint(tmp_path, "c", None)
    assert found is None or found["problems"]
    assert checkpoint(tmp_path, None, None) is None


def test_the_program_prints_one_line_of_json() -> None:
    wish: dict[str, Any] = {"no-such-service": WISH}
    program = Path(report_state.__file__)
    done = subprocess.run([sys.executable, program, json.dumps(wish)], capture_output=True, text=True, check=True)
    (line,) = done.stdout.splitlines()
    document = json.loads(line)
    assert set(document) == {"at", "gpu", "memory", "rollout", "services"}
    assert document["memory"] > 0
    assert document["services"]["no-such-service"]["current"] is None
