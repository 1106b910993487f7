"""Memory, swap, and what others do on the host while a service is measured: a build beside it halves what it shows.

Ours are the containers of Tinderbox and the process that asks; all else is others'.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

FIELDS = ("memory_available_gib", "swap_used_gib", "other_cpu_percent", "other_gpu_processes")
_KIB_PER_GIB = 1024**2


def containers() -> frozenset[str]:
    """Ids of Tinderbox's running containers; none where docker does not answer."""
    shown = _output("docker", "ps", "--quiet", "--no-trunc", "--filter", "name=^/?tinderbox-")
    return frozenset((shown or "").split())


def gpu_processes() -> list[int] | None:
    """Processes that compute on the GPU, or None where there is none to ask."""
    shown = _output("nvidia-smi", "--query-compute-apps=pid", "--format=csv,noheader")
    return None if shown is None else [int(line) for line in shown.split() if line.isdigit()]


class HostSampler:
    """Takes samples; use of the processor is of the time since the last one. `proc` is another's only in tests."""

    def __init__(self, ours: Iterable[str], proc: Path = Path("/proc")) -> None:
        self._ours = tuple(ours)
        self._proc = proc
        self._own = self._read("self/cgroup") or None
        self._before = self._ticks()

    def sample(self) -> dict[str, float | None]:
        """One sample; None for what can not be read."""
        meminfo = self._meminfo()
        available, total, free = (meminfo.get(name) for name in ("MemAvailable", "SwapTotal", "SwapFree"))
        pids = gpu_processes()
        return {
            "memory_available_gib": None if available is None else available / _KIB_PER_GIB,
            "swap_used_gib": None if total is None or free is None else (total - free) / _KIB_PER_GIB,
            "other_cpu_percent": self._others_share(),
            "other_gpu_processes": None if pids is None else float(sum(not self._is_ours(str(pid)) for pid in pids)),
        }

    def _others_share(self) -> float | None:
        """Percent of all processors' time that went to others."""
        now = self._ticks()
        (all_before, busy_before, ours_before), (all_now, busy_now, ours_now) = self._before, now
        self._before = now
        if all_now <= all_before:
            return None
        # A process of ours that has ended takes its ticks along.
        others = (busy_now - busy_before) - max(0, ours_now - ours_before)
        return min(100.0, max(0.0, 100 * others / (all_now - all_before)))

    def _ticks(self) -> tuple[int, int, int]:
        """Since boot: of all processors, of those that did something, and of our processes."""
        first = (self._read("stat").splitlines() or [""])[0].split()
        counts = [int(count) for count in first[1:9]]
        # user nice system idle iowait irq softirq steal; what the hypervisor took is nobody's here
        idle = sum(counts[3:5]) if len(counts) > 4 else 0
        return sum(counts), sum(counts) - idle, sum(map(self._process_ticks, self._processes()))

    def _processes(self) -> list[str]:
        try:
            return [name for name in os.listdir(self._proc) if name.isdigit() and self._is_ours(name)]  # noqa: PTH208
        except OSError:
            return []

    def _is_ours(self, pid: str) -> bool:
        cgroup = self._read(f"{pid}/cgroup")
        return bool(cgroup) and (cgroup == self._own or any(container in cgroup for container in self._ours))

    def _process_ticks(self, pid: str) -> int:
        """User and system time. The name before them stands in brackets and may hold anything."""
        fields = self._read(f"{pid}/stat").rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12]) if len(fields) > 12 else 0

    def _meminfo(self) -> dict[str, int]:
        rows = (line.split() for line in self._read("meminfo").splitlines())
        return {row[0].rstrip(":"): int(row[1]) for row in rows if len(row) > 1 and row[1].isdigit()}

    def _read(self, name: str) -> str:
        try:
            return (self._proc / name).read_text(encoding="utf-8", errors="replace")
        except OSError:  # also when a process has just ended
            return ""


def _output(*command: str) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
