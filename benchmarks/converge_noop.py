"""A re-run on one converged lab host, beside the least that any pyinfra run costs."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.result import Result

ROOT = Path(__file__).resolve().parents[1]
RUNS = 5
FLOOR = ("exec", "--", "true")
CONVERGED = ("deploys/spark.py",)
IMAGE = "Image"


class NotConvergedError(Exception):
    """The host changed, or failed, while it was measured: the figures would mean nothing."""


def converge_noop() -> Result:
    """Median wall time of `deploys/spark.py` on a converged lab host over that of `exec -- true` on the same host.

    The lab must be up and converged (`make demo`). Runs alternate, so that both see the same machine.
    """
    _run(CONVERGED)  # settles what an earlier version of the project left, and warms the page cache
    ours, floor, image = [], [], []
    round_trips = 0
    for _ in range(RUNS):
        run = _run(CONVERGED, converged=True)
        ours.append(run.seconds)
        image.append(run.stages[IMAGE])
        round_trips = run.round_trips
        floor.append(_run(FLOOR).seconds)
    seconds, peer = statistics.median(ours), statistics.median(floor)
    return Result(
        ours=seconds,
        peer=peer,
        ratio=seconds / peer,
        unit="s",
        workload=f"re-run on one converged lab host, median of {RUNS}; peer: a pyinfra run of one command",
        commands=(
            "pyinfra inventory.py deploys/spark.py -y",
            "pyinfra inventory.py exec -y -- true",
        ),
        details={"round trips": round_trips, "seconds of the image stage": round(statistics.median(image), 2)},
    )


@dataclass(frozen=True)
class _Run:
    """`stages`: seconds by stage."""

    seconds: float
    round_trips: int
    stages: dict[str, float]


def _run(what: tuple[str, ...], *, converged: bool = False) -> _Run:
    with tempfile.TemporaryDirectory() as folder:
        counted, stages = Path(folder) / "counted", Path(folder) / "stages"
        command = [sys.executable, "-m", "benchmarks.counted_pyinfra", "--yes", "inventory.py", *what]
        told = {"ROUND_TRIPS": str(counted), "STAGE_SECONDS": str(stages), "PYINFRA_PROGRESS": "off"}
        started = time.perf_counter()
        finished = subprocess.run(command, cwd=ROOT, env=os.environ | told, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - started
        if finished.returncode != 0 or (converged and "Success" in finished.stderr.split("--> Results")[0]):
            raise NotConvergedError(f"{' '.join(command)}: exit {finished.returncode}\n{finished.stderr[-3000:]}")
        return _Run(seconds, int(counted.read_text()), json.loads(stages.read_text()))
