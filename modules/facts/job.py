"""How a job on a host stands."""

from __future__ import annotations

import json
from typing import Literal

from pydantic import BaseModel, ConfigDict
from pyinfra.api import QuoteString, StringCommand

from modules.facts.base import HostFact

JOB_PROGRAM = "/usr/local/lib/tinderbox/job.py"


class JobProgress(BaseModel):
    """What the job's program last said. `total` 0: not known. `rate`: `unit` per second. `left_s`: to the job's end."""

    model_config = ConfigDict(frozen=True)

    step: str
    done: float = 0
    total: float = 0
    unit: str = ""
    rate: float = 0
    left_s: float | None = None
    note: str = ""


class JobStatus(BaseModel):
    """What `job.py` prints of a job; see there. `lost`: said to run, but its host was restarted under it."""

    model_config = ConfigDict(frozen=True)

    job: str
    state: Literal["absent", "running", "succeeded", "failed", "lost"]
    title: str | None = None
    cause: str | None = None
    exit_code: int | None = None
    elapsed_s: float = 0
    progress: JobProgress | None = None
    result: dict[str, object] | None = None
    tail: tuple[str, ...] = ()
    directory: str = ""


def parse_status(lines: list[str]) -> JobStatus:
    """The last line of `job.py start` or `job.py status`. Raises ValueError for anything else."""
    if not lines:
        raise ValueError("job.py printed nothing")
    return JobStatus.model_validate(json.loads(lines[-1]))


def status_command(name: str, key: str, *, wait_s: float = 0) -> StringCommand:
    """One look at a job; one that runs is waited for, `wait_s` seconds at most."""
    waiting = ["--wait", f"{wait_s:g}"] if wait_s else []
    return StringCommand("python3", JOB_PROGRAM, "status", *waiting, QuoteString(name), QuoteString(key))


class JobState(HostFact[JobStatus]):
    """The job's status; None where the programs for hosts are not installed."""

    def command(self, job: str, key: str) -> StringCommand:
        """Ask job.py, where it is.

        + job: the job's name
        + key: what it was started for
        """
        return StringCommand("! test -e", JOB_PROGRAM, "||", status_command(job, key))

    def parse(self, lines: list[str]) -> JobStatus:
        """See `parse_status`."""
        return parse_status(lines)
