"""What is told of a job that failed: the lines that matter, and the cause where it is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modules.facts.job import JobStatus
from modules.reporting.progress import duration

if TYPE_CHECKING:
    from modules.operations.job import Job

_SHOWN_LINES, _SHOWN_STEP = 15, 120
# What says no more than that it failed.
_FAILED = "docker build failed with exit status 1"


def failure(job: Job, status: JobStatus) -> list[str]:
    """The lines that tell of a failed job. A program that knows which of its lines matter names them itself."""
    # A run without a failure has no use for them.
    from modules.catalog import load_catalog
    from modules.diagnosis.job_log import causes, matter

    code = "" if status.exit_code is None else f", exit status {status.exit_code}"
    told = (status.result or {}).get("failed")
    failed = told if isinstance(told, dict) else {}
    where = f" in step {_short(str(failed['step']))}" if failed.get("step") else ""
    said = [str(line) for line in failed.get("lines") or []]
    # The program's own last words come after those of what it ran.
    last = [line for line in status.tail[-1:] if not line.endswith(_FAILED)]
    shown = [*matter(said, _SHOWN_LINES - 1), *last] if said else matter(status.tail, _SHOWN_LINES)
    if failed.get("cause"):
        lines = [f"{job.title}: {failed['cause']} (after {duration(status.elapsed_s)})"]
        logged = [f"    {line}" for line in matter(said, _SHOWN_LINES)]
        lines += ["what was logged until then ends:", *logged] if logged else []
    else:
        lines = [f"{job.title}: failed after {duration(status.elapsed_s)}{where} ({status.cause}{code}). Its log ends:"]
        lines += [f"    {line}" for line in shown]
    if job.log is not None:
        kernel = [str(line) for line in failed.get("kernel") or []]
        lines += causes(load_catalog().signatures, job.log, [*said, *status.tail], kernel)
    return [*lines, f"the whole log, on the host: {status.directory}/log"]


def _short(step: str) -> str:
    return step if len(step) <= _SHOWN_STEP else f"{step[:_SHOWN_STEP]}…"
