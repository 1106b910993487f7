"""The first deployment of a lab host, which most tests need, made to tell what a killed controller costs.

Its first two runs are killed in the middle of a job. That adds next to nothing, since the jobs go on.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.lab.killed_run import Job, KilledRun, find_job, kill_run_during
from tests.lab.lab_driver import Lab, Run

# One shard keeps the hub's client waiting (for less than it bears), while the rest arrives.
_SLOW_SHARD = {"host": "hub.lab", "method": "GET", "path": "model-00003-of", "delay_s": 8}


@dataclass(frozen=True)
class FirstDeployment:
    """`killed`: the job's name → the run that was killed during it; `last`: the run to the end.

    `finished`: the same jobs after it, before other tests have them run again.
    `requests`: all that the host asked of the mirror. On a lab that was found serving no run is killed.
    """

    killed: dict[str, KilledRun]
    last: Run
    finished: dict[str, Job | None]
    requests: list[dict[str, Any]]


def deploy_first(lab: Lab, fleet: Path, host: str) -> FirstDeployment:
    """Bring a bare host to serving."""
    killed = {}
    if find_job(lab, host, "gate") is None:
        killed["image"] = kill_run_during(lab, fleet, host, "image", _in_a_later_step, limit_s=400)
        with lab.faults(_SLOW_SHARD):
            killed["weights"] = kill_run_during(lab, fleet, host, "weights", _some_way, limit_s=900)
    last = lab.converge(fleet=fleet, timeout_s=1500)
    finished = {name: find_job(lab, host, name) for name in killed}
    return FirstDeployment(killed, last, finished, lab.requests(host=host))


def _in_a_later_step(build: Job) -> bool:
    return build.progress.get("unit") == "steps" and build.progress["done"] >= 3


def _some_way(download: Job) -> bool:
    return download.progress.get("step") == "fetching" and download.progress["done"] > download.progress["total"] / 3
