"""pyinfra as a child process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# pyinfra finishes the operation in flight before it honours an interrupt; a job on the host outlives it anyway.
_GRACE_S = 4.0


@dataclass(frozen=True)
class Finished:
    """`status` as of a shell: 130 after an interrupt."""

    status: int
    results: str
    seconds: float


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
    environment = os.environ | {"PYINFRA_PROGRESS": "off"}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as child:
        try:
            results, _ = child.communicate()
            status = child.returncode
        except KeyboardInterrupt:
            results, status = "", 130
            _interrupt(child)
    return Finished(status if status >= 0 else 128 - status, results, time.monotonic() - started)


def _interrupt(child: subprocess.Popen[str]) -> None:
    child.send_signal(signal.SIGINT)
    try:
        child.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        child.kill()
