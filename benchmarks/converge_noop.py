"""A re-run on one converged lab host, beside the least that any pyinfra run costs."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.result import Result

ROOT = Path(__file__).resolve().parents[1]
RUNS = 5
FLOOR = ("exec", "--", "true")
CONVERGED = ("deploys/spark.py",)


class NotConvergedError(Exception):
    """The host changed, or failed, while it was measured: the figures would mean nothing."""


def converge_noop() -> Result:
    """Median wall time of `deploys/spark.py` on a converged lab host over that of `exec -- true` on the same host.

    The lab must be up and converged (`make demo`). Runs alternate, so that both see the same machine.
    """
    _run(CONVERGED)  # settles what an earlier version of the project left, and warms the page cache
    ours, floor = [], []
    round_trips = 0
    for _ in range(RUNS):
        seconds, round_trips = _run(CONVERGED, converged=True)
        ours.append(seconds)
        seconds, _unused = _run(FLOOR)
        floor.append(seconds)
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
        details={"round trips": round_trips},
    )


def _run(what: tuple[str, ...], *, converged: bool = False) -> tuple[float, int]:
    with tempfile.NamedTemporaryFile() as counted:
        command = [sys.executable, "-m", "benchmarks.counted_pyinfra", "--yes", "inventory.py", *what]
        environment = os.environ | {"ROUND_TRIPS": counted.name, "PYINFRA_PROGRESS": "off"}
        started = time.perf_counter()
        finished = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - started
        if finished.returncode != 0 or (converged and "Success" in finished.stderr.split("--> Results")[0]):
            raise NotConvergedError(f"{' '.join(command)}: exit {finished.returncode}\n{finished.stderr[-3000:]}")
        return seconds, int(Path(counted.name).read_text())
