"""How much of the disk files occupy. Follows no link, leaves no file system, changes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_BLOCK = 512


def occupied(path: Path) -> int:
    """Bytes that the disk gains when a file, or a folder with all that it holds, goes."""
    seen: set[tuple[int, int]] = set()
    return sum(one.st_blocks * _BLOCK for one in _each(path) if _is_new(one, seen))


def _each(path: Path) -> Iterator[os.stat_result]:
    try:
        top = path.lstat()
    except OSError:
        return
    yield top
    if not path.is_dir() or path.is_symlink():
        return
    for folder, names, files in os.walk(path):
        for name in (*names, *files):
            try:
                found = os.lstat(Path(folder, name))
            except OSError:
                continue  # it went meanwhile
            if found.st_dev == top.st_dev:
                yield found
            elif name in names:
                names.remove(name)


def _is_new(one: os.stat_result, seen: set[tuple[int, int]]) -> bool:
    if one.st_nlink < 2:
        return True
    key = (one.st_dev, one.st_ino)
    if key in seen:
        return False
    seen.add(key)
    return True
