"""Follow a job from the controller by short looks."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, ClassVar

from pyinfra import logger
from pyinfra.api import Host, State, StringCommand

from modules.facts.job import JobStatus, parse_status, status_command
from modules.operations import unattended
from modules.operations.failed_job import failure
from modules.operations.reach import UnreachableError, ask
from modules.reporting.progress import Board, Doing, can_draw

if TYPE_CHECKING:
    from modules.operations.job import Job

# The host answers as soon as the job has ended. Until then, what is seen soon should not be old, and looks be few: each
# costs a host 0.1 s of a core, and of many hosts the controller more.
_WAITS_S = (0.4, 0.8)
_WAIT_S, _LOOKS_PER_S, _LONGEST_WAIT_S = 2.0, 2.0, 10.0
# Lost once, a job fell to a restart of its host; lost again and again, something there ends it.
_STARTS = 3
_STEP_S = 0.2

_hosts: dict[str, Host] = {}
_board = Board(plain=lambda name, line: _hosts[name].log(line))


Handler = Callable[[int, FrameType | None], object] | int | None


class _Operator:
    """Whether the operator has asked to leave; how many hosts are followed, and what Ctrl-C did before that.

    `farewells`: what to tell of each host's job to an operator who leaves.
    """

    leaves = False
    farewells: ClassVar[dict[str, list[str]]] = {}
    followers = 0
    before: Handler = None


def follow(state: State, host: Host, job: Job, start: StringCommand) -> bool:
    """Look at `job` until it ends; one that was lost to a restart of the host is started again, by `start`.

    Returns whether it succeeded; otherwise the reason has been logged. (pyinfra passes `state` and `host` by name.)
    """
    try:
        with followed(host):
            return until_ended(host, job, start)
    except UnreachableError as error:
        tell(host, [f"{job.title}: {error}; the job goes on without us, the next run picks it up"])
        return False


@contextmanager
def followed(host: Host) -> Iterator[None]:
    """While something long is followed on `host`: its line on the board, and Ctrl-C."""
    _hosts[host.name] = host
    _board.live = can_draw(_board.stream)
    try:
        with _interruptible():
            yield
    finally:
        _board.done(host.name)
        _Operator.farewells.pop(host.name, None)


def show(host: Host, what: Doing, farewell: list[str]) -> None:
    """Put `what` on the board. `farewell`: what an operator is told who leaves now."""
    _Operator.farewells[host.name] = farewell
    _board.update(host.name, what)


def until_ended(host: Host, job: Job, start: StringCommand) -> bool:
    """See `follow`."""
    waits = iter(_WAITS_S)
    starts = 1
    command = status_command(job.name, job.key)
    while True:
        status = status_of(host, command)
        if status is None:
            return False
        unattended.seen(host.name)
        command = status_command(job.name, job.key, wait_s=next(waits, _usual_wait_s()))
        _Operator.farewells[host.name] = leaving(host.name, job, status)
        if status.state in {"succeeded", "failed"}:
            if status.state == "failed":
                tell(host, failure(job, status))
            else:
                tell(host, notes(status), logger.warning)
            return status.state == "succeeded"
        if status.state == "running":
            _board.update(host.name, doing(job.title, status))
        elif starts < _STARTS:
            starts += 1
            command = start
            tell(host, [f"{job.title}: the job was lost with its host; starting it again"], logger.warning)
        else:
            tell(host, [f"{job.title}: the job was lost {starts} times; look at: journalctl -u {job.unit}"])
            return False
        if not pause(_STEP_S):
            return False


def _usual_wait_s() -> float:
    """How long a host is asked to wait with its answer, so that of all hosts only so many answer in a second."""
    return min(_LONGEST_WAIT_S, max(_WAIT_S, _Operator.followers / _LOOKS_PER_S))


def doing(title: str, status: JobStatus) -> Doing:
    """What the board shows of a running job: the log's last line where its program reports nothing."""
    progress = status.progress
    if progress is None:
        return Doing(title=title, step=status.tail[-1] if status.tail else "", elapsed_s=status.elapsed_s)
    return Doing(
        title=title,
        step=progress.step,
        done=progress.done,
        total=progress.total,
        unit=progress.unit,
        rate=progress.rate,
        elapsed_s=status.elapsed_s,
        left_s=progress.left_s,
        note=progress.note,
    )


def notes(status: JobStatus) -> list[str]:
    """What the job's program found worth telling although it succeeded."""
    found = (status.result or {}).get("notes")
    return [str(note) for note in found] if isinstance(found, list) else []


def leaving(name: str, job: Job, status: JobStatus) -> list[str]:
    """The lines that tell of a job that is left to itself."""
    return [
        f"{job.title}: left running on {name} as {job.unit}; the next run picks it up",
        f"    look: tail -f {status.directory}/log    stop: systemctl stop {job.unit}",
    ]


def status_of(host: Host, command: StringCommand) -> JobStatus | None:
    """What a command of `job.py` says of a job; None, and logged, where it says another thing."""
    ok, output = ask(host, command, pause)
    try:
        if ok:
            return parse_status(output.stdout_lines)
    except ValueError:
        pass
    tell(host, [f"{command}: not the answer that was expected:", *output.output_lines])
    return None


def tell(host: Host, lines: list[str], log_func: Callable[[str], None] = logger.error) -> None:
    """Log lines of a host."""
    for line in lines:
        host.log(line, log_func=log_func)


def pause(seconds: float) -> bool:
    """Wait; returns False when the operator wants to leave. In small steps, since a signal wakes no greenlet.

    `time.sleep` is gevent's under pyinfra's command line, so other hosts go on meanwhile.
    """
    for _ in range(max(1, round(seconds / _STEP_S))):
        if _Operator.leaves:
            break
        time.sleep(_STEP_S)
    # While hosts are asked what goes on there, nobody's part in the run shall end, and be told as a failure.
    while unattended.is_leaving():
        time.sleep(_STEP_S)
    return not _Operator.leaves


@contextmanager
def _interruptible() -> Iterator[None]:
    """At Ctrl-C, stop following: pyinfra waits at its end for whatever is in flight, and then exits with 0."""
    if _Operator.followers == 0:
        _Operator.before = _on_interrupt(_leave)
    _Operator.followers += 1
    try:
        yield
    finally:
        _Operator.followers -= 1
        if _Operator.followers == 0:
            _on_interrupt(_Operator.before or signal.SIG_DFL)


def _on_interrupt(handler: Handler) -> Handler:
    try:
        return signal.signal(signal.SIGINT, handler)
    except ValueError:  # not in the main thread: whoever embeds us handles signals
        return None


def _leave(_number: int, _frame: FrameType | None) -> None:
    _Operator.leaves = True
    for name in _Operator.farewells:
        _board.done(name)
    if not unattended.has_begun():
        for name, lines in _Operator.farewells.items():
            tell(_hosts[name], lines, logger.warning)
    unattended.leave(_Operator.farewells)
