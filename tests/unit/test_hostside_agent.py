"""What gateways are told of a host."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from modules.hostside import agent
from modules.hostside.agent import DRAIN, READY, UnitStates, answer, note_told

if TYPE_CHECKING:
    from modules.hostside.drain_mark import Mark
    from modules.hostside.watch_note import note_check, note_file
else:
    from drain_mark import Mark
    from watch_note import note_check, note_file

SETTINGS = {"services": {"gpt-oss": {}}, "gateways": ["127.0.0.1"]}


def said(folder: Path, service: str = "gpt-oss", unit: str = "active") -> str:
    return answer(service, SETTINGS, lambda _: unit, folder / "drain", folder / "generated")


def test_a_server_that_serves_is_ready_and_one_that_does_not_is_down(tmp_path: Path) -> None:
    assert said(tmp_path) == READY
    assert said(tmp_path, unit="activating") == "down #its unit is activating"
    assert said(tmp_path, unit="") == "down #its unit is unknown"
    assert said(tmp_path, "another") == "down #no such service on this host"


def test_a_marked_one_takes_nothing_new_whatever_its_unit_does(tmp_path: Path) -> None:
    (tmp_path / "drain").mkdir()
    (tmp_path / "drain" / "gpt-oss").write_text("{}")
    assert said(tmp_path) == said(tmp_path, unit="activating") == DRAIN


def test_one_that_is_measured_takes_nothing_new_for_as_long_as_somebody_says_that_it_is(tmp_path: Path) -> None:
    mark = Mark("gpt-oss", tmp_path / "drain")
    mark.put(measure=True)
    assert said(tmp_path) == DRAIN
    (tmp_path / "drain-measured" / "gpt-oss").write_text(json.dumps({"until": time.monotonic() - 1}))
    assert said(tmp_path) == READY
    mark.stay()
    assert said(tmp_path) == DRAIN


def test_one_that_generates_nothing_is_down_and_ready_once_it_does(tmp_path: Path) -> None:
    folder = tmp_path / "generated"
    note_check("gpt-oss", 0, folder)
    assert said(tmp_path) == READY
    known = json.loads(note_file("gpt-oss", folder).read_text())
    note_file("gpt-oss", folder).write_text(json.dumps({**known, "at": time.time() - 90}))
    note_check("gpt-oss", 1, folder)
    assert said(tmp_path).startswith("down #it has generated nothing for 9")
    note_check("gpt-oss", 0, folder)
    assert said(tmp_path) == READY


def test_what_a_watchdog_that_is_gone_has_seen_last_counts_no_more(tmp_path: Path) -> None:
    folder = tmp_path / "generated"
    note_check("gpt-oss", 3, folder)
    states = {"tinderbox-gpt-oss.service": "active", "tinderbox-watch@gpt-oss.service": "inactive"}

    def told() -> str:
        return answer("gpt-oss", SETTINGS, lambda name: states[name], tmp_path / "drain", folder)

    assert told() == READY
    # One that begins again after its pause still watches.
    states["tinderbox-watch@gpt-oss.service"] = "activating"
    assert told().startswith("down #it has generated nothing")


def test_systemd_is_asked_once_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    now = [0.0]

    def run(*words: str) -> str:
        asked.append(words[-1])
        return "active\n"

    monkeypatch.setattr(agent, "run", run)
    states = UnitStates(lambda: now[0])
    assert [states("a"), states("a"), states("b")] == ["active"] * 3
    now[0] = 5.0
    states("a")
    assert asked == ["a", "b", "a"]


def test_each_gateway_that_was_told_is_noted(tmp_path: Path) -> None:
    note_told("gpt-oss", "10.0.0.1", tmp_path, lambda: 1.0)
    note_told("gpt-oss", "10.0.0.2", tmp_path, lambda: 2.0)
    note_told("gpt-oss", "10.0.0.1", tmp_path, lambda: 3.0)
    assert json.loads((tmp_path / "gpt-oss.told").read_text()) == {"10.0.0.1": 3.0, "10.0.0.2": 2.0}


@pytest.fixture
def listening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, Path]]:
    """The program's server, and its settings."""
    settings = tmp_path / "agent.json"
    settings.write_text(json.dumps(SETTINGS))
    monkeypatch.setattr(agent, "SETTINGS", settings)
    monkeypatch.setattr(agent.Answering, "units", lambda *_: "active")
    monkeypatch.setattr(agent.Answering, "timeout", 0.3)
    opened = socket.create_server(("127.0.0.1", 0))
    server = agent.Server(opened)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield opened.getsockname()[1], settings
    server.shutdown()
    server.server_close()


def asked(port: int, question: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(question)
        return connection.recv(200)


def test_a_gateway_is_answered_in_one_line_and_a_stranger_is_not(listening: tuple[int, Path]) -> None:
    port, settings = listening
    assert asked(port, b"gpt-oss\n") == b"ready up 100%\n"
    # Who says nothing holds up nobody else.
    silent = socket.create_connection(("127.0.0.1", port))
    assert asked(port, b"gpt-oss\n") == b"ready up 100%\n"
    silent.close()
    settings.write_text(json.dumps({**SETTINGS, "gateways": ["192.0.2.1"]}))
    assert asked(port, b"gpt-oss\n") == b""
