"""Run long work on a host as a job: start it or attach to it, show how far it is, fail the host when it fails."""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass

from pyinfra import host
from pyinfra.api import FunctionCommand, QuoteString, StringCommand
from pyinfra.api.command import PyinfraCommand

from modules.facts.job import JOB_PROGRAM
from modules.operations import unattended
from modules.operations.follow import follow
from modules.spec.signature import LogSource

_NAME = re.compile(r"^[a-z0-9][a-z0-9.-]*$")


@dataclass(frozen=True)
class Job:
    """Long work. `name` and `key` together tell one job from another: one that runs is attached to, not started twice.

    `title`: for people. `command`: argv on the host, run as root with the site's network settings in its environment;
    never a secret in it. `timeout_s`: the host ends the job after that. `log`: as what a failed one's lines are looked
    through for known failures; None: they are not.
    """

    name: str
    key: str
    title: str
    command: tuple[str, ...]
    timeout_s: int
    log: LogSource | None = None

    def __post_init__(self) -> None:
        for part in (self.name, self.key):
            if not _NAME.match(part):
                raise ValueError(f"{part!r}: a job's name and key are lower-case letters, digits, dots and hyphens")

    @property
    def unit(self) -> str:
        """The transient systemd unit that it runs in."""
        return f"tinderbox-job-{self.name}-{self.key}.service"


def start_command(job: Job) -> StringCommand:
    """Start the job, or attach where it runs already."""
    unattended.begins(job.unit)
    words = ["--title", job.title, "--timeout", str(job.timeout_s), "--", *job.command]
    return StringCommand("python3", JOB_PROGRAM, "start", job.name, job.key, *(QuoteString(word) for word in words))


def run_job(job: Job) -> Generator[PyinfraCommand, None, None]:
    """What an operation yields from to have `job` done when the next command runs."""
    start = start_command(job)
    yield start
    yield FunctionCommand(follow, (job, start), {})
    host.log(f"{job.title}: done")
