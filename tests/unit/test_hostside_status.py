"""The parts of the program by which a host tells its state."""

from __future__ import annotations

import http.server
import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from modules.hostside import plain_http, status_service, status_state, whose_process
from modules.operations.hostside import programs
from modules.status.ask import programs_sum

CONTAINER, HOST = "c0ffee00" * 8, "deadbeef" * 8


@pytest.fixture
def server() -> Iterator[http.server.ThreadingHTTPServer]:
    class Engine(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.headers["authorization"] in {None, "Bearer door"}
            self.send_response(200 if self.path == "/metrics" and known else 404)
            self.end_headers()
            self.wfile.write(b"vllm:generation_tokens_total 7.0\nvllm:num_requests_running 1.0\n")

        def log_message(self, *_: object) -> None:
            pass

    up = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Engine)
    threading.Thread(target=up.serve_forever, daemon=True).start()
    yield up
    up.shutdown()
    up.server_close()


def test_an_answer_is_its_body_and_a_refusal_none(server: http.server.ThreadingHTTPServer) -> None:
    where = ("127.0.0.1", server.server_port)
    assert "num_requests_running 1.0" in str(plain_http.get(where, "/metrics", 5.0))
    assert plain_http.get(where, "/metrics", 5.0, key="door") is not None
    assert plain_http.get(where, "/metrics", 5.0, key="wrong") is None
    assert plain_http.get(where, "/other", 5.0) is None
    assert plain_http.get("/no/such/socket", "/", 5.0) is None


def test_an_answer_in_chunks_is_whole() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert plain_http.body_of(head + b"5\r\nhello\r\n1;x=y\r\n!\r\n0\r\n\r\n") == "hello!"
    assert plain_http.body_of(b"HTTP/1.1 500 no\r\n\r\noops") is None
    assert plain_http.body_of(b"SSH-2.0-OpenSSH\r\n") is None
    assert plain_http.body_of(b"") is None


def test_a_server_that_says_nothing_is_left_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        assert plain_http.get(mute.getsockname(), "/", 0.2) is None


def test_an_engine_is_looked_at_twice(
    server: http.server.ThreadingHTTPServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_state, "WINDOW_S", 0.01)
    (tmp_path / "key.env").write_text("OTHER=x\nVLLM_API_KEY=door\n")
    looks: list[Any] = []
    wish = {"api": ["127.0.0.1", server.server_port], "key": [str(tmp_path / "key.env"), "VLLM_API_KEY"]}
    status_state.sampled(wish, looks)
    assert [look["figures"]["generation_tokens"] for look in looks] == [7.0, 7.0]
    assert looks[1]["at"] > looks[0]["at"]
    looks.clear()
    status_state.sampled({"api": ["127.0.0.1", 9], "key": None}, looks)
    assert looks == [None]


class Proc:
    """A made-up /proc."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "net").mkdir()
        row = "0: {}:{:04X} 00000000:0000 {} 00000000:00000000 00:00000000 00000000 0 0 {} 1"
        tables = {
            "tcp": [row.format("0100007F", 8000, "0A", 71), row.format("0100007F", 8001, "01", 72)],
            "tcp6": [row.format("0" * 32, 8002, "0A", 73)],
        }
        for name, rows in tables.items():
            (folder / "net" / name).write_text("\n".join(["head", *rows]) + "\n")

    def process(self, pid: int, cgroup: str, *inodes: int, own_kib: int = 0) -> None:
        place = self.folder / str(pid)
        (place / "fd").mkdir(parents=True)
        (place / "cgroup").write_text(f"0::{cgroup}\n")
        (place / "comm").write_text(f"program-{pid}\n")
        (place / "status").write_text(f"Name:\tx\nRssAnon:\t   {own_kib} kB\n")
        for at, inode in enumerate(inodes):
            (place / "fd" / str(at)).symlink_to(f"socket:[{inode}]")


def test_processes_are_those_of_their_containers_and_units(tmp_path: Path) -> None:
    proc = Proc(tmp_path)
    proc.process(10, "/init.scope")
    proc.process(11, "/system.slice/tinderbox-gpt-oss.service", 71, own_kib=4)
    proc.process(12, f"/docker/{HOST}/system.slice/docker-{CONTAINER}.scope", 73)
    assert whose_process.processes(str(tmp_path)) == {
        10: (None, None),
        11: (None, "tinderbox-gpt-oss.service"),
        # A lab host is itself in a container: the innermost counts.
        12: (CONTAINER, None),
    }
    assert whose_process.name_of(11, str(tmp_path)) == "program-11"
    assert whose_process.name_of(99, str(tmp_path)) is None
    assert (whose_process.own_memory(11, str(tmp_path)), whose_process.own_memory(99, str(tmp_path))) == (4096, 0)

    sockets = whose_process.listening({8000, 8001, 8002, 8003}, str(tmp_path))
    assert sockets == {8000: {"socket:[71]"}, 8001: set(), 8002: {"socket:[73]"}, 8003: set()}
    assert whose_process.holders(sockets, [12, 10, 11], str(tmp_path)) == {8000: [11], 8001: [], 8002: [12], 8003: []}
    # One that can not be seen from here.
    assert whose_process.holders(sockets, [12], str(tmp_path))[8000] == []


def test_what_is_written_down_of_a_service_is_told(tmp_path: Path) -> None:
    state, settings, run = (tmp_path / name for name in ("state", "etc", "run"))
    ledger, gates = state / "ledger" / "gpt-oss", state / "gates" / "gpt-oss"
    for folder in (ledger, gates, settings, run / "generated", run / "drain"):
        folder.mkdir(parents=True)
    part = {"name": "weights", "size": 60, "source": "measured"}
    plan = {"weights": part, "cache": {**part, "name": "KV cache"}, "graphs": None, "others": [{**part, "name": "x"}]}
    restart = {"at": "b", "event": "restarted", "by": "watchdog", "note": "wedged"}
    events = [{"at": "a", "event": "activated"}, restart, {"at": "c", "event": "good"}]
    (ledger / "r2.json").write_text(json.dumps({"events": events, "memory_plan": plan}))
    (ledger / "current").symlink_to("r2.json")
    (gates / "r2.json").write_text(json.dumps({"release": "r2", "finished": "t2", "samples": {"big": [1]}}))
    (gates / "r3.json").write_text(json.dumps({"release": "r3", "finished": "t3"}))
    (settings / "gpt-oss.memory.json").write_text('{"needs": 70}')
    (run / "generated" / "gpt-oss").write_text('{"at": 5, "misses": 1}')
    (run / "drain" / "gpt-oss").touch()

    told = status_service.written_down("gpt-oss", str(state), str(settings), str(run))

    assert (told["current"], told["last_good"], told["standing"], told["closed"]) == ("r2", None, "good", True)
    assert (told["watchdog"], told["last_event"]["event"], told["watched"]["misses"]) == (restart, "good", 1)
    assert (told["plan"], told["needs"]) == ({"weights": 60, "KV cache": 60, "x": 60}, 70)
    assert (told["gate"]["current"]["finished"], told["gate"]["later"]["release"]) == ("t2", "r3")
    assert "samples" not in told["gate"]["current"]
    assert status_service.services(str(state)) == ["gpt-oss"]


def test_of_a_service_of_which_nothing_is_written_down_nothing_is_told(tmp_path: Path) -> None:
    told = status_service.written_down("gpt-oss", *[str(tmp_path / "none")] * 3)
    assert (told["in_ledger"], told["current"], told["plan"], told["closed"]) == (False, None, None, False)
    assert told["gate"] == {"current": None, "later": None}
    assert status_service.services(str(tmp_path / "none")) == []


def test_a_ledger_that_is_damaged_tells_nothing_in_place_of_an_error(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger" / "gpt-oss"
    ledger.mkdir(parents=True)
    (ledger / "r2.json").write_text("{")
    (ledger / "current").symlink_to("r2.json")
    told = status_service.written_down("gpt-oss", *[str(tmp_path)] * 3)
    assert (told["current"], told["standing"], told["last_event"]) == ("r2", None, None)


def test_programs_are_summed_up_alike_here_and_there(tmp_path: Path) -> None:
    assert status_state.programs(str(tmp_path / "none")) is None
    for name, content in programs().items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "__pycache__").mkdir()
    assert status_state.programs(str(tmp_path)) == programs_sum(programs())
    (tmp_path / "ledger.py").write_bytes(b"pass\n")
    assert status_state.programs(str(tmp_path)) != programs_sum(programs())


def test_a_program_that_is_not_there_tells_nothing() -> None:
    assert status_state.said(status_state.begin("no-such-program-at-all")) is None
    assert status_state.said(status_state.begin("sh", "-c", "echo out; exit 3")) == {"status": 3, "out": "out\n"}


def test_a_run_that_has_ended_holds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_state, "RUN", str(tmp_path))
    assert status_state.run_under_way() is None
    (tmp_path / "run.lock").write_text(json.dumps({"user": "ana", "here": os.getpid()}))
    assert status_state.run_under_way() == {"user": "ana", "here": os.getpid()}
    (tmp_path / "run.lock").write_text(json.dumps({"user": "ana", "here": 2**22 + 1}))
    assert status_state.run_under_way() is None
