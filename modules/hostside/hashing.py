"""The hash of a large file, read once and piecewise."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

_PIECE = 8 * 1024 * 1024

OnBytes = Callable[[int], None]


def hash_of_file(path: Path, found: hashlib._Hash, on_bytes: OnBytes = lambda _: None) -> str:
    """Hex digits of a file's hash. `found`: the beginning of it; `on_bytes`: told the size of each piece that was read.

    What was read is dropped from the page cache: on a GB10 that is the GPU's memory. Raises `OSError` where it can not
    be read.
    """
    done = 0
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            found.update(piece)
            os.posix_fadvise(file.fileno(), done, len(piece), os.POSIX_FADV_DONTNEED)
            done += len(piece)
            on_bytes(len(piece))
    return found.hexdigest()
