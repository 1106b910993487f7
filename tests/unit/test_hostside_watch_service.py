"""When a server counts as wedged, and what is done about it."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest

from modules.hostside import watch_service
from modules.hostside.ledger import Ledger, point
from modules.hostside.watch_service import Watch, answers, end, measured, reason, restart

# As the programs import them on a host, so that these are the very ones that they use.
if TYPE_CHECKING:
    from modules.hostside import gpu_sample
    from modules.hostside.activation import alone
    from modules.hostside.ask_server import Endpoint
else:
    import gpu_sample
    from activation import alone
    from ask_server import Endpoint

SLOW = "slow"
T = TypeVar("T")


class Server:
    """`replies`, `tokens`, `measured`: what each check finds, the last for ever; tokens None: it has no counters."""

    def __init__(self, replies: list[bool], tokens: list[float | None], gated: list[bool] | None = None) -> None:
        self.replies, self.tokens, self.gated = replies, tokens, gated or [False]
        self.asked = 0

    def answers(self) -> bool:
        self.asked += 1
        return self._next(self.replies)

    def counts(self) -> dict[str, float | None]:
        return {"prompt_tokens": None, "generation_tokens": self._next(self.tokens)}

    def pauses(self) -> bool:
        return self._next(self.gated)

    @staticmethod
    def _next(values: list[T]) -> T:
        return values.pop(0) if len(values) > 1 else values[0]

    def watched(self, checks: int) -> list[bool]:
        """What each of so many checks says, until one says that it is wedged."""
        watch, told = Watch(self.answers, self.counts, self.pauses, checks=3), list[bool]()
        for _ in range(checks):
            told.append(watch.wedged())
            if told[-1]:
                break
        return told


def test_a_server_that_replies_is_well() -> None:
    assert Server([True], [7.0]).watched(10) == [False] * 10


def test_no_reply_and_no_progress_three_times_is_wedged() -> None:
    assert Server([False], [7.0]).watched(10) == [False, False, True]


def test_a_server_that_is_slow_because_it_works_is_well() -> None:
    assert Server([False], [float(count) for count in range(100)]).watched(10) == [False] * 10


def test_without_counters_the_reply_decides() -> None:
    assert Server([False], [None]).watched(10) == [False, False, True]


def test_one_reply_in_between_begins_the_count_anew() -> None:
    replies = [False, False, True, False, False, False]
    assert Server(replies, [7.0]).watched(10) == [False] * 5 + [True]


def test_one_counted_token_in_between_does_so_too() -> None:
    # Looked at before and after the first check, and after each one that follows a miss.
    tokens: list[float | None] = [7.0, 7.0, 7.0, 8.0]
    assert Server([False], tokens).watched(10) == [False] * 5 + [True]


def test_nothing_is_asked_while_a_gate_measures_and_what_was_missed_before_is_forgotten() -> None:
    server = Server([False], [7.0], [False, False, True, True, False])
    assert server.watched(10) == [False] * 6 + [True]
    assert server.asked == 5


@pytest.fixture
def url() -> Iterator[Callable[[int, object], str]]:
    """URL of a server that answers every chat with that status and document."""
    servers: list[ThreadingHTTPServer] = []

    def serve(status: int, document: object) -> str:
        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                """Say nothing."""

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                if document == SLOW:
                    threading.Event().wait(1)
                # Who asked may have given up.
                with suppress(OSError):
                    self.send_response(status)
                    self.end_headers()
                    self.wfile.write(json.dumps(document).encode())

        servers.append(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
        threading.Thread(target=servers[-1].serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_port}"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


def chat(content: str | None, tokens: int | None = None) -> dict[str, object]:
    usage = {} if tokens is None else {"usage": {"completion_tokens": tokens}}
    return {"choices": [{"message": {"content": content}}], **usage}


@pytest.mark.parametrize(
    ("status", "document", "alive"),
    [
        (200, chat("hello"), True),
        # A parser may lose what was made: the count has it.
        (200, chat(None, tokens=4), True),
        (200, chat("", tokens=0), False),
        (200, chat(None), False),
        (200, "no json of ours", False),
        (400, {}, True),
        (401, {}, True),
        (500, {}, False),
        (503, {}, False),
        (200, SLOW, False),
    ],
)
def test_what_counts_as_an_answer(
    url: Callable[[int, object], str], status: int, document: object, alive: bool
) -> None:
    assert answers(Endpoint(url(status, document), "m"), 0.3) == alive


def test_nobody_there_is_no_answer() -> None:
    assert not answers(Endpoint("http://127.0.0.1:9", "m"), 1)


@pytest.mark.parametrize(
    ("shown", "told"),
    [
        ("tinderbox-job-gate-svc-r1-w1.service loaded active running Tinderbox: measure svc\n", True),
        ("tinderbox-job-gate-svc-r1-w1.service loaded failed failed Tinderbox: measure svc\n", False),
        ("", False),
    ],
)
def test_whether_a_gate_measures(monkeypatch: pytest.MonkeyPatch, shown: str, told: bool) -> None:
    def run(*words: str) -> str:
        assert words[-1] == "tinderbox-job-gate-svc-*.service"
        return shown

    monkeypatch.setattr(watch_service, "run", run)
    assert measured("svc") == told


class Host:
    """A host with a service in a folder, whose docker can or can not kill."""

    def __init__(self, folder: Path) -> None:
        self.ledger = Ledger("svc", folder)
        self.ledger.record("r1", {}, [])
        self.ledger.mark("r1", "good")
        point(self.ledger.directory / "current", "r1.json")
        self.docker_kills, self.active = True, "active"
        self.commands: list[list[str]] = []

    def run(self, command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        # All of the story is told before the end of the server, with which the watch ends, too.
        assert self.events()[-1]["event"] == "restarted"
        self.commands.append(command)
        return subprocess.CompletedProcess(command, 0 if command[0] != "docker" or self.docker_kills else 1, "", "")

    def events(self) -> list[dict[str, str]]:
        return list((self.ledger.entry("r1") or {})["events"])


TOLD = "wedged: no reply and no token counted in 3 checks over 361 s"


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    host = Host(tmp_path)
    monkeypatch.setattr(subprocess, "run", host.run)
    monkeypatch.setattr(watch_service, "unit_state", lambda _: {"ActiveState": host.active})
    monkeypatch.setattr(
        watch_service, "journal", lambda *_: ["key hf_abcdefghijklmnopqrstuvwxyz012345", "the last line"]
    )
    monkeypatch.setattr(gpu_sample, "sample", lambda: {"power_w": 14.1, "utilisation_percent": 96.0})
    return host


def test_the_evidence_is_kept_the_ledger_tells_it_and_the_unit_fails(host: Host) -> None:
    restart(host.ledger, "unit", TOLD)
    assert host.commands == [["docker", "kill", "tinderbox-svc"]]
    event = host.events()[-1]
    assert (event["event"], event["note"], event["by"]) == ("restarted", TOLD, "watchdog")
    kept = host.ledger.wedged_log("r1").read_text()
    assert kept.startswith(f"watchdog: {TOLD}\n")
    assert "GPU: power_w 14.1, utilisation_percent 96\n" in kept
    assert "MemAvailable:" in kept
    assert "the last line" in kept
    assert "hf_abc" not in kept


def test_where_docker_can_not_kill_systemd_restarts(host: Host) -> None:
    host.docker_kills = False
    restart(host.ledger, "unit", TOLD)
    assert host.commands[1:] == [["systemctl", "restart", "--no-block", "unit"]]


def test_a_container_that_can_not_die_is_left_to_systemd(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def stuck(command: list[str], **words: object) -> subprocess.CompletedProcess[str]:
        seen.append(command)
        if command[0] == "docker":
            raise subprocess.TimeoutExpired(command, 60)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", stuck)
    end("tinderbox-svc", "unit")
    assert [command[0] for command in seen] == ["docker", "systemctl"]


def test_nothing_is_done_while_somebody_else_is_at_work_or_the_server_ends_anyway(host: Host) -> None:
    with alone(host.ledger):
        restart(host.ledger, "unit", TOLD)
    host.active = "deactivating"
    restart(host.ledger, "unit", TOLD)
    assert host.commands == []
    assert [event["event"] for event in host.events()] == ["good"]


def test_the_reason_tells_what_the_gpu_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_sample, "sample", lambda: {"power_w": 14.13, "utilisation_percent": 96.0})
    assert reason(3, 361.4) == f"{TOLD}; the GPU is 96 % busy at 14.1 W"
    monkeypatch.setattr(gpu_sample, "sample", lambda: None)
    assert reason(3, 361.4) == TOLD
