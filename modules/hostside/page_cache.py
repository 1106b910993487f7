"""What of a file the page cache holds, and how to empty and to fill it."""

from __future__ import annotations

import ctypes
import mmap
import os
from contextlib import suppress
from pathlib import Path


def drop(path: Path | str) -> None:
    """Take a file out of the page cache, after what of it is not on the disk yet was written there."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with suppress(OSError):  # of a filesystem that is mounted read-only nothing is unwritten
            os.fdatasync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def cached(path: Path | str) -> int:
    """How many bytes of a file the page cache holds."""
    size = Path(path).stat().st_size
    if not size:
        return 0
    pages = -(-size // mmap.PAGESIZE)
    found = (ctypes.c_ubyte * pages)()
    library = ctypes.CDLL(None, use_errno=True)
    with Path(path).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as mapped:
        address = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
        asked = library.mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), found)
    if asked != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)
    return sum(page & 1 for page in found) * mmap.PAGESIZE


def fill(path: Path | str) -> None:
    """Read a file into the page cache."""
    with Path(path).open("rb", buffering=0) as file:
        while file.read(16 * 1024 * 1024):
            pass
