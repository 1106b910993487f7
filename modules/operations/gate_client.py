"""Measure from the controller: a job on the host samples and keeps the result, the client runs here."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from paramiko import SSHException
from pyinfra.api import Host, QuoteString, State, StringCommand

from modules.facts.job import JobProgress, JobStatus, status_command
from modules.operations import drain, unattended
from modules.operations.controller_tools import ControllerError, tokenizer_here, tools_are_here, tools_here
from modules.operations.failed_job import failure
from modules.operations.follow import doing, followed, pause, show, status_of, tell, until_ended
from modules.operations.gate_job import Client
from modules.operations.job import Job, start_command
from modules.operations.reach import UnreachableError, ask
from modules.release import layout

_HOSTSIDE = Path(__file__).parents[1] / "hostside"
# As gate_delivery.py says it.
AWAITED = "waiting for the controller's figures"
_DELIVER = str(layout.PROGRAMS / "gate_delivery.py")
# A server is not blamed for what could not be seen of it.
NOTHING_MEASURED = (
    "nothing was measured, so nothing is judged or rolled back: what serves goes on, and the next run measures"
)
_LOOK_S = 0.6
# Well within what modules/hostside/drain_mark.py gives.
_STAYS_S = 30.0
_SHOWN = 15
# Two clients on one controller would measure each other.
_turn = threading.Lock()


def measured_here(state: State, host: Host, job: Job, client: Client) -> bool:
    """Measure; returns whether the host has the result. Otherwise the reason has been logged, and `job` was stopped."""
    if _turn.locked():
        host.log(f"{job.title}: waits until another host is measured from here")
    stays = _Stays(host, client)
    try:
        with _turn_after(stays), followed(host):
            done = _measured(host, job, client, stays)
    except (ControllerError, UnreachableError, OSError, SSHException, subprocess.TimeoutExpired) as error:
        tell(host, [f"{job.title}: {error}"])
        done = False
    if not done:
        tell(host, [f"{job.title}: {NOTHING_MEASURED}"])
    return done


class _Stays:
    """Says to a host from time to time that it is measured, so that gateways go on sending it nothing."""

    def __init__(self, host: Host, client: Client) -> None:
        self._host, self._client = host, client
        self._due = time.monotonic() + _STAYS_S

    def say(self) -> None:
        """Say so where it is time to."""
        if self._client.drained and time.monotonic() >= self._due:
            ask(self._host, drain.stays(self._client.service), pause)
            self._due = time.monotonic() + _STAYS_S


@contextmanager
def _turn_after(stays: _Stays) -> Iterator[None]:
    while not _turn.acquire(timeout=_LOOK_S):
        stays.say()
    try:
        yield
    finally:
        _turn.release()


def _measured(host: Host, job: Job, client: Client, stays: _Stays) -> bool:
    if client.benchy and not tools_are_here():
        host.log(f"{job.title}: installing the tools on the controller, once")
    tools = tools_here() if client.benchy else Path()
    tokenizer = tokenizer_here(host, client.snapshot, pause) if client.benchy else Path()
    stays.say()
    if not _sampling(host, job):
        return False
    if client.made_key is not None:
        client = replace(client, secret=_key_of(host, *client.made_key))
    with tempfile.TemporaryDirectory(prefix="tinderbox-client-") as folder:
        more = ("--tools", str(tools), "--tokenizer", str(tokenizer))
        figures = run_client(host, job, client, Path(folder), more, meanwhile=stays.say)
    if figures is None:
        ask(host, StringCommand("systemctl stop", QuoteString(job.unit)), pause)
        return False
    given, output = ask(host, StringCommand(layout.PYTHON, _DELIVER, client.service, client.token), pause, figures)
    if not given:
        tell(host, [f"{job.title}: the figures could not be given to the host:", *output.output_lines])
        return False
    return until_ended(host, job, start_command(job))


def _key_of(host: Host, variable: str, path: str) -> str:
    """The API key that the host has made, as `VARIABLE=VALUE`. It is shown nowhere, and kept on no disk here."""
    given, output = ask(host, StringCommand("grep", QuoteString(f"^{variable}="), QuoteString(path)), pause)
    if not given or not output.stdout_lines:
        raise ControllerError(f"the API key in {path} on {host.name} could not be read")
    return str(output.stdout_lines[0])


def _sampling(host: Host, job: Job) -> bool:
    """Start the job on the host, and wait until it is only the figures that it waits for."""
    command = start_command(job)
    unattended.ends_with_run(host.name, job.unit)
    while True:
        status = status_of(host, command)
        if status is None:
            return False
        if status.state != "running":
            tell(host, failure(job, status))
            return False
        if status.progress is not None and status.progress.step == AWAITED:
            return True
        show(host, doing(job.title, status), _farewell(job))
        command = status_command(job.name, job.key)
        if not pause(_LOOK_S):
            return False


def _farewell(job: Job) -> list[str]:
    return [f"{job.title}: ends with this run; the next one measures anew"]


def _environment(folder: Path) -> dict[str, str]:
    """`folder`: where the client tells how far it is, as a job on a host does."""
    return {**os.environ, "TINDERBOX_JOB_DIR": str(folder)}


def _progress(folder: Path) -> JobProgress | None:
    with suppress(OSError, ValueError):
        return JobProgress.model_validate_json((folder / "progress.json").read_text(encoding="utf-8"))
    return None


def run_client(
    host: Host,
    job: Job,
    client: Client,
    folder: Path,
    more: tuple[str, ...],
    *,
    meanwhile: Callable[[], None] = lambda: None,
) -> str | None:
    """The figures, as JSON; None where there are none, for a reason that has been logged."""
    into, log, began = folder / "figures.json", folder / "log", time.monotonic()
    words = [sys.executable, str(_HOSTSIDE / "run_client.py"), *client.arguments, *more, "--into", str(into)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            env=_environment(folder),
        )  # fmt: skip
    try:
        assert process.stdin is not None
        process.stdin.write(f"{client.secret}\n".encode())
        process.stdin.flush()
        while process.poll() is None:
            elapsed_s = time.monotonic() - began
            if elapsed_s > client.limit_s:
                tell(host, [f"{job.title}: the client did not end within {client.limit_s:.0f} s"])
                return None
            show(host, doing(job.title, JobStatus(job=job.name, state="running", elapsed_s=elapsed_s,
                                                  progress=_progress(folder))), _farewell(job))  # fmt: skip
            meanwhile()
            if not pause(_LOOK_S):
                return None
    finally:
        # It also ends by itself when we do, since its standard input ends then.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.returncode != 0:
        last = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_SHOWN:]
        tell(
            host, [f"{job.title}: the client on the controller failed. Its log ends:", *(f"    {one}" for one in last)]
        )
        return None
    return into.read_text(encoding="utf-8")
