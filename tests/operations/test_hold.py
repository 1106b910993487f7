"""A host is held for a run by the real program, over connections that break; another run is let in, or kept out."""

from __future__ import annotations

import json
import shlex
import subprocess
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gevent
import gevent.event
import pytest
from pyinfra.context import ctx_host, ctx_state

from modules.operations import hold as holding
from modules.operations import host_hold, reach
from modules.operations.hold import TakenError, is_held, keep, take, take_again
from modules.operations.reach import UnreachableError, ask
from modules.spec.holder import HOLD, HOLDER, LOCK, Holder

ANNA = Holder("anna", "elsewhere", 4711, "deploys/spark.py", time.time(), "/home/anna/office.yaml")
MINE = Holder("ben", "here", 1, "deploys/spark.py", time.time(), "/home/ben/office.yaml")


class Channel:
    """A command of this machine in place of one over SSH."""

    def __init__(self) -> None:
        self.child: subprocess.Popen[bytes] | None = None

    def settimeout(self, _: float) -> None:
        """The program answers at once."""

    def exec_command(self, command: str) -> None:
        self.child = subprocess.Popen(
            shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    @property
    def running(self) -> subprocess.Popen[bytes]:
        assert self.child is not None
        return self.child

    def sendall(self, data: bytes) -> None:
        assert self.running.stdin is not None
        if self.running.poll() is not None:
            raise OSError("Socket is closed")
        self.running.stdin.write(data)
        self.running.stdin.flush()

    def recv(self, _: int) -> bytes:
        assert self.running.stdout is not None
        return self.running.stdout.readline()

    def recv_stderr(self, _: int) -> bytes:
        assert self.running.stderr is not None
        return self.running.stderr.read()

    def close(self) -> None:
        """Of a connection that broke, this end alone knows."""

    def ends(self) -> None:
        """As when the host sees that the connection is gone."""
        assert self.running.stdin is not None
        self.running.stdin.close()
        self.running.wait(10)


@dataclass
class Client:
    channels: list[Channel] = field(default_factory=list)
    active: bool = True

    def get_transport(self) -> Client:
        return self

    def is_active(self) -> bool:
        return self.active

    def set_keepalive(self, _: int) -> None:
        """None is needed."""

    sock = None

    def open_session(self, timeout: float) -> Channel:
        assert timeout
        self.channels.append(Channel())
        return self.channels[-1]


class Connector:
    def __init__(self) -> None:
        self.client = Client()

    def disconnect(self) -> None:
        self.client.active = False


class Config:
    SU_USER = SHELL = None


class State:
    config = Config()

    def __init__(self) -> None:
        self.failed: set[Host] = set()

    def fail_hosts(self, hosts: set[Host]) -> None:
        self.failed |= hosts


class Output:
    output_lines = stdout_lines = ("done",)


class Host:
    name = "spark-1"
    connected = True
    connector_data: dict[str, Any] = {}  # noqa: RUF012
    current_op_global_arguments: dict[str, Any] | None = None

    def __init__(self) -> None:
        self.connector, self.state = Connector(), State()
        self.cuts = 0
        self.ran: list[str] = []
        self.said: list[str] = []

    def run_shell_command(self, command: Any, **_: Any) -> tuple[bool, Output]:
        if self.cuts:
            self.cuts -= 1
            raise EOFError
        self.ran.append(str(command))
        return True, Output()

    def connect(self, **_: Any) -> None:
        self.connector.client = Client(self.connector.client.channels)
        self.connected = True

    def log(self, text: str, log_func: Any = None) -> None:
        self.said.append(text)

    @property
    def channels(self) -> list[Channel]:
        return self.connector.client.channels


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The host's lock, in a folder; and no run of another test."""
    lock = tmp_path / "run" / "run.lock"
    text = holding._PROGRAM.read_text().replace("/run/tinderbox/run.lock", str(lock))
    program = tmp_path / "hold_host.py"
    program.write_text(text.replace("PATIENCE_S = 3.0", "PATIENCE_S = 1.0"))
    monkeypatch.setattr(holding, "_PROGRAM", program)
    monkeypatch.setattr(holding, "_holds", {})
    monkeypatch.setattr(holding, "_taken", {})
    monkeypatch.setattr("gevent.spawn", lambda *_: None)
    monkeypatch.setenv(HOLDER, MINE.document())
    monkeypatch.delenv(LOCK, raising=False)
    holding._holder.cache_clear()
    monkeypatch.setattr(reach, "keep_alive", lambda _: None)
    yield lock
    holding._holder.cache_clear()


@pytest.fixture
def host() -> Iterator[Any]:
    made = Host()
    yield made
    for channel in made.channels:
        channel.ends()


def other(lock: Path, holder: Holder = ANNA) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    """Another controller's run that comes to the host, and what it is told."""
    program = lock.parents[1] / "hold_host.py"
    words = ["python3", str(program), json.dumps(asdict(holder))]
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    return child, json.loads(child.stdout.readline())


def holder_of(lock: Path) -> object:
    """The process that holds the host, as it says itself."""
    text = lock.read_text()
    return json.loads(text)["here"] if text else None


def test_a_host_is_held_again_over_the_next_connection(lock: Path, host: Any) -> None:
    take(host)
    host.channels[0].ends()
    host.cuts = 1
    assert ask(host, "status", lambda _: True)[0]  # type: ignore[arg-type]
    assert is_held("spark-1")
    child, told = other(lock)
    child.kill()
    assert (told["holds"], told["holder"]["user"]) == (False, "ben")


def test_it_is_taken_from_the_runs_own_connection_that_the_host_still_takes_for_good(lock: Path, host: Any) -> None:
    take(host)
    first = holder_of(lock)
    host.cuts = 1
    assert ask(host, "status", lambda _: True)[0]  # type: ignore[arg-type]
    host.channels[0].running.wait(10)
    assert holder_of(lock) not in {None, first}
    child, told = other(lock)
    child.kill()
    assert told["holds"] is False


def test_a_host_that_another_run_has_taken_meanwhile_fails_with_who_that_is(lock: Path, host: Any) -> None:
    take(host)
    host.channels[0].ends()
    child, told = other(lock)
    assert told == {"holds": True}
    host.cuts = 1
    with pytest.raises(UnreachableError) as ended:
        ask(host, "status", lambda _: True)  # type: ignore[arg-type]
    assert "another run changes this host: anna@elsewhere, process 4711" in str(ended.value)
    assert "Nothing was changed" not in str(ended.value)
    assert "goes on no further here" in str(ended.value)
    # And so it stays, also where that run has ended: what it did there is not known.
    child.kill()
    child.wait()
    with pytest.raises(UnreachableError, match="anna@elsewhere"):
        ask(host, "status", lambda _: True)  # type: ignore[arg-type]
    assert host.ran == []


@pytest.mark.parametrize("taken", [False, True])
def test_a_host_that_let_go_of_a_silent_run_is_taken_again_or_fails(lock: Path, host: Any, taken: bool) -> None:
    take(host)
    host.channels[0].ends()  # after so long without a word, while the connection lasts
    child = other(lock)[0] if taken else None
    keep(holding._holds["spark-1"])
    if child is None:
        assert holder_of(lock) is not None
        assert host.state.failed == set()
        return
    child.kill()
    child.wait()
    assert host.state.failed == {host}
    assert "anna@elsewhere" in host.said[-1]
    with pytest.raises(UnreachableError, match="anna@elsewhere"):
        ask(host, "status", lambda _: True)  # type: ignore[arg-type]


def test_a_host_that_is_slow_to_be_taken_again_keeps_no_other_from_hearing_of_the_run(
    lock: Path, host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, heard = Host(), gevent.event.Event()
    slow.name = "spark-2"
    monkeypatch.setattr("gevent.spawn", gevent.Greenlet.spawn)
    monkeypatch.setattr(holding, "_ALIVE_S", 0.01)

    def kept(hold: holding.Hold) -> None:
        if hold.host.name == "spark-2":
            gevent.sleep(60)
        elif hold.host.name == "spark-1":
            heard.set()

    monkeypatch.setattr(holding, "keep", kept)
    monkeypatch.setattr(holding, "_asked", lambda *_: None)
    take(slow)  # type: ignore[arg-type]
    take(host)
    assert heard.wait(timeout=10)
    holding._holds.clear()


def test_a_host_that_was_never_held_is_not_taken_by_a_new_connection(lock: Path, host: Any) -> None:
    host.cuts = 1
    assert ask(host, "status", lambda _: True)[0]  # type: ignore[arg-type]
    assert (host.channels, lock.exists()) == ([], False)
    take_again(host)
    assert host.channels == []


def test_a_second_run_of_this_very_user_is_another_one(lock: Path, host: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    take(host)
    monkeypatch.setattr(holding, "_THIS_RUN", "another")
    second: Any = Host()
    with pytest.raises(TakenError, match="Nothing was changed here"):
        take(second)
    assert holder_of(lock) is not None


def test_what_the_operation_has_held_is_the_host_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not pyinfra's `host`, which is nobody in the greenlet that keeps the hold."""
    given: list[object] = []
    monkeypatch.delenv(HOLD, raising=False)
    monkeypatch.setattr(host_hold, "take", given.append)
    machine = SimpleNamespace(name="spark-1", connector=SimpleNamespace(client=object()))
    run = SimpleNamespace(is_executing=True, inventory=SimpleNamespace(get_host={"spark-1": machine}.__getitem__))
    with ctx_state.use(run), ctx_host.use(machine):
        assert list(host_hold.host_held._inner()) == []
    assert [one is machine for one in given] == [True]
