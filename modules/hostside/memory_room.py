"""How much memory there is yet to take: of the machine, and of the control groups that bound a process.

`/proc/meminfo` tells of the whole machine, also to what runs in a container or a slice with a limit, where the kernel
kills for memory that the machine still has. So the least of both counts. Control groups of both versions are read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")
# Version 1 has no word for "no limit": it tells the largest number of pages.
_NO_LIMIT = 2**60
# Of each version: the limit, what is used of it, and where its page cache is counted.
_FILES = (
    ("memory.max", "memory.current", ("inactive_file", "active_file")),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", ("total_inactive_file", "total_active_file")),
)


@dataclass(frozen=True)
class Room:
    """In bytes. `available`: without swapping, page cache given back. `free`: of the machine, used for nothing."""

    available: int
    free: int


def meminfo(proc: Path = PROC) -> dict[str, int]:
    """Bytes, by the kernel's names."""
    rows = (line.split() for line in (proc / "meminfo").read_text().splitlines())
    return {words[0].rstrip(":"): int(words[1]) * 1024 for words in rows if len(words) > 1}


def room(bounds: Iterable[Path] = (), proc: Path = PROC) -> Room:
    """What there is now. `bounds`: control groups, as `cgroups_of` finds them."""
    found = meminfo(proc)
    limits = [left for left in map(left_in, bounds) if left is not None]
    return Room(min([found["MemAvailable"], *limits]), found["MemFree"])


def cgroups_of(pid: int | str = "self", proc: Path = PROC, root: Path = CGROUPS) -> list[Path]:
    """The control groups that count a process's memory, its own first, as far as they can be seen from here."""
    try:
        lines = (proc / str(pid) / "cgroup").read_text().splitlines()
    except OSError:
        return []
    paths = {names: path for _, names, path in (line.split(":", 2) for line in lines if line.count(":") > 1)}
    first = next((path for names, path in paths.items() if "memory" in names.split(",")), None)
    base = root / "memory" if first is not None else root
    own = Path(first if first is not None else paths.get("", "/"))
    above = [own, *own.parents]
    return [folder for folder in (base / path.relative_to("/") for path in above) if folder.is_dir()]


def left_in(cgroup: Path) -> int | None:
    """What may yet be taken in it, its page cache counted as free; None where it has no limit."""
    for limit_name, usage_name, cache_names in _FILES:
        limit, usage = _number(cgroup / limit_name), _number(cgroup / usage_name)
        if limit is not None and usage is not None and limit < _NO_LIMIT:
            return max(0, limit - usage + _cache(cgroup, cache_names))
    return None


def drop_page_cache(proc: Path = PROC, *, sync: bool = True) -> bool:
    """Give the page cache back. False where this is not allowed (in a container).

    `sync`: write first what is not on the disk yet, which may take long; such pages stay otherwise.
    """
    if sync:
        os.sync()
    try:
        (proc / "sys/vm/drop_caches").write_text("3\n")
    except OSError:
        return False
    return True


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # "max"
        return None


def _cache(cgroup: Path, names: tuple[str, ...]) -> int:
    try:
        rows = (line.split() for line in (cgroup / "memory.stat").read_text().splitlines())
        return sum(int(row[1]) for row in rows if len(row) == 2 and row[0] in names)
    except (OSError, ValueError):
        return 0
