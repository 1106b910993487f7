"""pyinfra as a child process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from modules.reporting.differences import DIFFERENCES_FILE, Difference, read_differences
from modules.reporting.host_errors import ERRORS_FILE, HostError, read_errors
from modules.reporting.left_behind import LEFT_FILE, Left, read_left

ROOT = Path(__file__).resolve().parents[2]
# pyinfra finishes the operation in flight before it honours an interrupt; a job on the host outlives it anyway.
_GRACE_S = 4.0
INTERRUPTED = 130
_ASKED = {signal.SIGINT, signal.SIGTERM}


@dataclass(frozen=True)
class Finished:
    """`status` as of a shell: 130 after an interrupt. `errors`: by host. `left`: what goes on after an interrupt.

    `differences`: what a dry run has found, in order.
    """

    status: int
    results: str
    seconds: float
    errors: dict[str, list[HostError]] = field(default_factory=dict)
    left: Left = field(default_factory=Left)
    differences: list[Difference] = field(default_factory=list)


# What every pyinfra of this process gets: open files (of the fleet's lock), and environment variables.
_files: list[int] = []
_variables: dict[str, str] = {}


@contextmanager
def pass_on(file: int, variables: Mapping[str, str]) -> Iterator[None]:
    """While this lasts, have every pyinfra that is started here keep `file` open, and know these variables."""
    _files.append(file)
    _variables.update(variables)
    try:
        yield
    finally:
        _files.remove(file)
        for name in variables:
            _variables.pop(name, None)


def run_pyinfra(deploy: str, *, limits: list[str], dry: bool) -> Finished:
    """Run a deploy file over the fleet; progress goes to the terminal, the results are returned."""
    command = [
        str(Path(sys.executable).with_name("pyinfra")),
        "inventory.py",
        deploy,
        "--json",
        "--dry" if dry else "--yes",
    ]
    for limit in limits:
        command += ["--limit", limit]
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tinderbox-") as folder:
        errors, left = Path(folder) / "errors.jsonl", Path(folder) / "left.json"
        told = {"PYINFRA_PROGRESS": "off", ERRORS_FILE: str(errors), LEFT_FILE: str(left)}
        differences = Path(folder) / "differences.jsonl"
        if dry:
            told[DIFFERENCES_FILE] = str(differences)
        status, results = _run(command, os.environ | _variables | told)
        seconds = time.monotonic() - started
        return Finished(status, results, seconds, read_errors(errors), read_left(left), read_differences(differences))


def _run(command: list[str], environment: dict[str, str]) -> tuple[int, str]:
    # Held back in the child until `config.py` knows what to do with them: a Python that still imports would answer by a
    # traceback.
    signal.pthread_sigmask(signal.SIG_BLOCK, _ASKED)
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True,
        pass_fds=tuple(_files),
    ) as child:  # fmt: skip
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _ASKED)
            results, _ = child.communicate()
        except KeyboardInterrupt:
            _interrupt(child)
            return INTERRUPTED, ""
    return child.returncode if child.returncode >= 0 else 128 - child.returncode, results


def _interrupt(child: subprocess.Popen[str]) -> None:
    child.send_signal(signal.SIGINT)
    try:
        child.wait(_GRACE_S)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        child.kill()
