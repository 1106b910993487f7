"""The memory that a build may take: how many compilers it bears, and what to do where it does not bear one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.pause_services import paused, running
    from modules.hostside.progress import Progress
else:
    from pause_services import paused, running

# What a server held is free at once for the kernel, and not at once in its figures.
_SETTLE_S = 20
_FULL_GIB = 1024**2


class MemoryShortError(Exception):
    """Not one compiler fits; the text says what to do."""


@dataclass(frozen=True)
class Need:
    """`compiler_gib`: of one compiler; 0: the recipe compiles nothing. `keep_gib`: left to the host.

    `stop_services`: whether Tinderbox's services may be stopped for the build.
    """

    compiler_gib: float
    keep_gib: float
    stop_services: bool


def available_gib(meminfo: str) -> float:
    """MemAvailable of /proc/meminfo."""
    return next(int(line.split()[1]) for line in meminfo.splitlines() if line.startswith("MemAvailable:")) / _FULL_GIB


def compilers(meminfo: str, cpus: int, need: Need) -> int:
    """How many compilers the memory bears at once, at least one; GB10 does not kill what takes too much, it wedges."""
    if need.compiler_gib <= 0:
        return max(1, cpus)
    return max(1, min(cpus, int((available_gib(meminfo) - need.keep_gib) / need.compiler_gib)))


def short_gib(meminfo: str, need: Need) -> float:
    """What is missing for a single compiler; 0 where nothing is."""
    if need.compiler_gib <= 0:
        return 0.0
    return max(0.0, need.keep_gib + need.compiler_gib - available_gib(meminfo))


@contextmanager
def room(need: Need, progress: Progress, meminfo: Callable[[], str] | None = None) -> Iterator[int]:
    """Have memory for the build; gives the number of compilers.

    Where there is not enough, and only there, the services of Tinderbox are stopped and afterwards started again, if
    that is allowed. Raises `MemoryShortError`, with the services as they were.
    """
    read = meminfo or Path("/proc/meminfo").read_text
    cpus = os.cpu_count() or 1
    if not short_gib(read(), need):
        yield compilers(read(), cpus, need)
        return
    services = running()
    if not services or not need.stop_services:
        raise MemoryShortError(refusal(read(), need, services))
    with paused(services, progress):
        if not _settled(read, need):
            raise MemoryShortError(refusal(read(), need, []))
        yield compilers(read(), cpus, need)


def refusal(meminfo: str, need: Need, services: list[str]) -> str:
    """What is missing, and what to do about it. `services`: those of Tinderbox that run."""
    lines = (
        f"memory is short: one compiler of this recipe takes {need.compiler_gib:g} GiB, {need.keep_gib:g} GiB are kept "
        f"for the host, and {available_gib(meminfo):.1f} GiB are available. "
    )
    if services:
        return lines + (
            f"{', '.join(services)} can make room: set build.stop_engines: true in the fleet file, and Tinderbox stops "
            "what it must for the build and starts it again; or build on another host"
        )
    return lines + "End what takes the memory (ps -eo rss,comm --sort=-rss | head), or build on another host"


def _settled(read: Callable[[], str], need: Need) -> bool:
    for _ in range(_SETTLE_S):
        if not short_gib(read(), need):
            return True
        time.sleep(1)
    return not short_gib(read(), need)
