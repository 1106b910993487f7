"""Runs whose controller dies, all of it and at once, while a job of theirs is in full swing."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modules.lab.layout import ROOT
from tests.lab.lab_driver import Lab

_JOBS = "/var/lib/tinderbox/jobs"
_PAUSE_S = 0.2


@dataclass(frozen=True)
class Job:
    """A job as its host tells. `started`: differs for each start; `starts`: how many there were."""

    directory: str
    started: float
    starts: int
    state: str
    progress: dict[str, Any]


@dataclass(frozen=True)
class KilledRun:
    """The job before its run was killed and after, and what the run had said until then."""

    before: Job
    after: Job
    said: str


def find_job(lab: Lab, host: str, name: str) -> Job | None:
    """The latest job of this name, if there ever was one."""
    told = lab.ssh(host, f"sudo python3 -c {shlex.quote(_TELL)} {_JOBS} {name}").stdout
    document = json.loads(told)
    if document is None:
        return None
    unit = f"tinderbox-job-{Path(document['directory']).name}.service"
    if document["state"] == "running" and lab.ssh(host, f"systemctl is-active {unit}", check=False).rc != 0:
        document["state"] = "lost"
    return Job(**document)


# Read here and not by the product's own program, since that is what is on trial.
_TELL = (
    "import json, sys, pathlib as p; "
    "found = sorted(p.Path(sys.argv[1]).glob(sys.argv[2] + '-*/status.json'), key=lambda f: f.stat().st_mtime); "
    "read = lambda f: json.loads(f.read_text()) if f.exists() else {}; "
    "one = found[-1].parent if found else None; "
    "status = read(found[-1]) if found else {}; "
    "print(json.dumps(one and dict(directory=str(one), started=status['started'], state=status['state'], "
    "progress=read(one / 'progress.json'), starts=1 + (one / 'log.previous').exists())))"
)


def kill_run_during(
    lab: Lab, fleet: Path, host: str, name: str, wanted: Callable[[Job], bool], *, limit_s: float
) -> KilledRun:
    """Start a run over `fleet`, and kill its whole process group once job `name` on `host` is as `wanted`."""
    argv = [str(Path(sys.executable).with_name("pyinfra")), "inventory.py", "deploys/spark.py", "-y"]
    log = lab.layout.folder / f"run-killed-during-{name}.log"
    with (
        log.open("w") as output,
        subprocess.Popen(
            argv, cwd=ROOT, env={**os.environ, **lab.environment(fleet)}, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
        ) as run,
    ):  # fmt: skip
        try:
            before = _await(lab, host, name, wanted, run, time.monotonic() + limit_s)
        finally:
            os.killpg(run.pid, signal.SIGKILL)
    said = log.read_text()
    assert before is not None, f"no job {name} came to the point where the run was to be killed:\n{said}"
    after = find_job(lab, host, name)
    assert after is not None
    return KilledRun(before, after, said)


def _await(
    lab: Lab, host: str, name: str, wanted: Callable[[Job], bool], run: subprocess.Popen[bytes], deadline: float
) -> Job | None:
    while run.poll() is None and time.monotonic() < deadline:
        job = find_job(lab, host, name)
        if job is not None and job.state == "running" and wanted(job):
            return job
        time.sleep(_PAUSE_S)
    return None
