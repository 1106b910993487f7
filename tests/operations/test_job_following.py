"""Following a job, with a host whose answers are given beforehand."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest
from paramiko import SSHException
from pyinfra.api.exceptions import ConnectError

from modules.operations import follow as following
from modules.operations.follow import follow
from modules.operations.job import Job, start_command

JOB = Job("image", "abc", "image x", ("true",), 60)


# What pyinfra makes of a connection that ends while a command runs: no status, no output, no exception.
CUT = "cut"
# The same, of a host that goes down, when sudo no longer finds its name.
COMPLAINS = "complains"


class Output:
    def __init__(self, lines: list[str]) -> None:
        self.stdout_lines = self.output_lines = lines
        self.output = "\n".join(lines)


class GoneClient:
    """A connection that has ended."""

    def get_transport(self) -> None:
        """None is left."""


class Connector:
    client: GoneClient | None = None

    def disconnect(self) -> None:
        """Nothing to forget."""


class Host:
    """`answers`: what each command prints (a status or a text), or what it raises; the last one stays."""

    name = "spark-1"
    connected = True
    current_op_global_arguments: dict[str, Any] = {"_sudo": True, "name": "x"}  # noqa: RUF012

    def __init__(self, *answers: Any, reconnects: bool = True) -> None:
        self.answers = list(answers)
        self.reconnects = reconnects
        self.ran: list[str] = []
        self.arguments: dict[str, Any] = {}
        self.said: list[str] = []
        self.connector = Connector()
        self.connects = 0

    def run_shell_command(self, command: Any, **arguments: Any) -> tuple[bool, Output]:
        self.ran.append(command.get_raw_value())
        self.arguments = arguments
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        if answer is CUT:
            return False, Output([])
        if answer is COMPLAINS:
            self.connector.client = GoneClient()
            return False, Output(["sudo: unable to resolve host spark-1: Temporary failure in name resolution"])
        return True, Output([answer if isinstance(answer, str) else json.dumps({"job": "image-abc", **answer})])

    def connect(self, **_: Any) -> None:
        self.connects += 1
        if not self.reconnects:
            raise ConnectError("no route to host")
        self.connected = True

    def log(self, text: str, log_func: Any = None) -> None:
        self.said.append(text)


RUNNING = {"state": "running", "directory": "/jobs/image-abc", "tail": ["line"]}
DONE = {"state": "succeeded"}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No waiting, and nobody has asked to leave."""
    monkeypatch.setattr(time, "sleep", lambda _: None)
    yield
    following._Operator.leaves = False


def followed(host: Host) -> bool:
    return follow(None, host, JOB, start_command(JOB))  # type: ignore[arg-type]


def test_a_job_is_looked_at_until_it_has_ended() -> None:
    host = Host(RUNNING, RUNNING, DONE)

    assert followed(host)
    assert len(host.ran) == 3
    # The host itself waits, and answers when the job ends.
    waits = ["", " --wait 0.4", " --wait 0.8"]
    assert [command.partition("job.py ")[2] for command in host.ran] == [f"status{wait} image abc" for wait in waits]
    assert host.arguments["_sudo"] is True
    assert host.arguments["_timeout"] > 0
    assert "name" not in host.arguments


def test_a_failed_job_fails_the_host_with_its_last_lines() -> None:
    host = Host(RUNNING | {"state": "failed", "cause": "exit-code", "exit_code": 1, "tail": ["it broke"]})

    assert not followed(host)
    assert any("it broke" in line for line in host.said)


def test_what_a_job_found_worth_telling_is_told() -> None:
    host = Host(DONE | {"result": {"notes": ["one file was fetched anew"]}})

    assert followed(host)
    assert host.said == ["one file was fetched anew"]


def test_a_broken_connection_is_made_anew() -> None:
    host = Host(RUNNING, SSHException("gone"), EOFError(), RUNNING, DONE)

    assert followed(host)
    assert host.connects == 2


@pytest.mark.parametrize("cut", [CUT, COMPLAINS])
def test_a_connection_that_is_cut_in_the_middle_of_a_look_is_made_anew(cut: str) -> None:
    host = Host(RUNNING, cut, RUNNING, DONE)

    assert followed(host)
    assert host.connects == 1


def test_a_host_that_stays_away_fails_and_its_job_is_left_running() -> None:
    host = Host(SSHException("gone"), reconnects=False)

    assert not followed(host)
    assert "the job goes on without us" in host.said[-1]
    assert host.connects > 5


def test_a_job_that_was_lost_with_its_host_is_started_again() -> None:
    host = Host(RUNNING | {"state": "lost"}, RUNNING, DONE)

    assert followed(host)
    assert [" start " in command for command in host.ran] == [False, True, False]


def test_a_job_that_is_lost_again_and_again_is_not_started_for_ever() -> None:
    host = Host(RUNNING | {"state": "lost"})

    assert not followed(host)
    assert sum(" start " in command for command in host.ran) == 2
    assert "journalctl -u tinderbox-job-image-abc.service" in host.said[-1]


def test_an_answer_that_is_no_status_fails_this_host_only_and_is_shown() -> None:
    host = Host("python3: can't open file")

    assert not followed(host)
    assert host.said[-1] == "python3: can't open file"


def test_an_operator_who_leaves_is_told_how_to_look_and_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Host(RUNNING)

    def interrupt(_: float) -> None:
        with pytest.raises(SystemExit) as ended:
            following._leave(2, None)
        assert ended.value.code == 130

    monkeypatch.setattr(time, "sleep", interrupt)

    assert not followed(host)
    assert len(host.ran) == 1
    assert "left running on spark-1" in host.said[-2]
    assert "systemctl stop tinderbox-job-image-abc.service" in host.said[-1]


def test_ctrl_c_is_given_back_to_whom_it_belonged() -> None:
    before = signal.getsignal(signal.SIGINT)

    followed(Host(DONE))

    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(("followers", "seconds"), [(1, 2), (4, 2), (16, 8), (40, 10)])
def test_of_many_hosts_each_is_looked_at_more_rarely(
    monkeypatch: pytest.MonkeyPatch, followers: int, seconds: float
) -> None:
    monkeypatch.setattr(following._Operator, "followers", followers - 1)
    host = Host(*[RUNNING] * 4, DONE)

    assert followed(host)
    assert host.ran[-1].endswith(f"job.py status --wait {seconds} image abc")
