"""How fast files can be read: by the disk itself, and as engines read them, with an empty and with a full page cache.

No more is read than is asked for, and what was read is dropped from the page cache: on a GB10 that is the GPU's memory.
"""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.page_cache import drop
else:
    from page_cache import drop

BLOCK = 16 * 1024 * 1024
# A disk needs several questions at once to show what it can.
_DEPTH = 8
_ALIGNMENT = 4096


@dataclass(frozen=True)
class Extent:
    """A part of a file, at most one block long."""

    path: Path
    offset: int
    size: int


def sample(sizes: dict[Path, int], limit: int) -> list[Extent]:
    """The beginnings of all files, of each in proportion to its size, `limit` bytes in all; whole blocks where it can.

    Of each file, because a disk may be slow in some places only.
    """
    total = sum(sizes.values())
    share = min(1.0, limit / total) if total else 0.0
    found = []
    for path, size in sorted(sizes.items()):
        wanted = size if share == 1.0 else min(size, max(BLOCK, int(size * share) // BLOCK * BLOCK))
        found += [Extent(path, offset, min(BLOCK, wanted - offset)) for offset in range(0, wanted, BLOCK)]
    return found


def empty(extents: Sequence[Extent]) -> None:
    """Take the files out of the page cache."""
    for path in dict.fromkeys(extent.path for extent in extents):
        drop(path)


def direct(extents: Sequence[Extent], seconds: float) -> float | None:
    """Bytes per second past the page cache, with several reads at once; None where the filesystem allows none.

    `seconds`: after so many, no further block is begun.
    """
    ends = time.monotonic() + seconds

    def read(part: Sequence[Extent]) -> int:
        done = 0
        with mmap.mmap(-1, BLOCK) as buffer:
            for extent in part:
                if time.monotonic() > ends:
                    break
                descriptor = os.open(extent.path, os.O_RDONLY | os.O_DIRECT)
                try:
                    whole = -(-extent.size // _ALIGNMENT) * _ALIGNMENT
                    with memoryview(buffer) as view:
                        done += os.preadv(descriptor, [view[:whole]], extent.offset)
                finally:
                    os.close(descriptor)
        return done

    began = time.monotonic()
    try:
        with ThreadPoolExecutor(_DEPTH) as pool:
            done = sum(pool.map(read, [extents[number::_DEPTH] for number in range(_DEPTH)]))
    except OSError:
        return None
    return _rate(done, began)


def by_reading(extents: Sequence[Extent], seconds: float) -> float:
    """Bytes per second by `read`, one after the other, as loaders with a buffer of their own do."""
    ends, began, done = time.monotonic() + seconds, time.monotonic(), 0
    buffer = bytearray(BLOCK)
    for path, part in _by_file(extents):
        with path.open("rb", buffering=0) as file:
            for extent in part:
                if time.monotonic() > ends:
                    break
                file.seek(extent.offset)
                with memoryview(buffer) as view:
                    done += file.readinto(view[: extent.size])
    return _rate(done, began)


def by_mapping(extents: Sequence[Extent], seconds: float) -> float:
    """Bytes per second by a mapping that is copied, as safetensors does by default."""
    ends, began, done = time.monotonic() + seconds, time.monotonic(), 0
    buffer = bytearray(BLOCK)
    for path, part in _by_file(extents):
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            for extent in part:
                if time.monotonic() > ends:
                    break
                with memoryview(mapped) as view:
                    buffer[: extent.size] = view[extent.offset : extent.offset + extent.size]
                done += extent.size
    return _rate(done, began)


Reading = Callable[[Sequence[Extent], float], float]


def cold_and_warm(reading: Reading, extents: Sequence[Extent], seconds: float) -> tuple[float, float]:
    """The rates of a way with the page cache empty, and full of just this."""
    empty(extents)
    cold = reading(extents, seconds)
    # What the cold pass has brought in, up to where its time ended, once more: all of it must be there.
    reached = _within(extents, cold * seconds)
    reading(reached, seconds)
    warm = reading(reached, seconds)
    empty(extents)
    return cold, warm


def _within(extents: Sequence[Extent], limit: float) -> list[Extent]:
    found: list[Extent] = []
    for extent in extents:
        limit -= extent.size
        if found and limit < 0:
            break
        found.append(extent)
    return found


def _by_file(extents: Sequence[Extent]) -> list[tuple[Path, list[Extent]]]:
    found: dict[Path, list[Extent]] = {}
    for extent in extents:
        found.setdefault(extent.path, []).append(extent)
    return list(found.items())


def _rate(done: int, began: float) -> float:
    return done / max(time.monotonic() - began, 1e-6)
