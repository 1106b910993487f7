"""What a command costs: time on the clock, and CPU of itself and of all that it waited for."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from modules.lab.layout import ROOT


@dataclass(frozen=True)
class Cost:
    """In seconds. `cpu`: user and system."""

    wall: float
    cpu: float


def costing(command: Sequence[str], environment: Mapping[str, str]) -> tuple[Cost, str]:
    """Run it to its end in the project's folder; gives what it cost, and all that it said. Its status is not judged."""
    with tempfile.TemporaryFile() as said:
        started = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT
        )
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read().decode(errors="replace")
    return Cost(wall, used.ru_utime + used.ru_stime), f"{text}\nexit status {process.returncode}"


def cpu_of(container: str) -> float | None:
    """CPU seconds of a container so far, by its control group; None where this machine does not tell them there."""
    for path, factor in (
        (f"/sys/fs/cgroup/cpuacct/docker/{container}/cpuacct.usage", 1e-9),
        (f"/sys/fs/cgroup/docker/{container}/cpu.stat", 1e-6),
        (f"/sys/fs/cgroup/system.slice/docker-{container}.scope/cpu.stat", 1e-6),
    ):
        if Path(path).exists():
            return int(Path(path).read_text().split()[-1 if factor == 1e-9 else 1]) * factor
    return None
