"""One build at a time on a host: two would take twice the memory."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from modules.hostside.progress import Progress

LOCK = Path("/run/lock/tinderbox-build.lock")
_PAUSE_S = 0.5


@contextmanager
def alone(title: str, progress: Progress, lock: Path = LOCK) -> Iterator[None]:
    """Wait for another build to end, if one runs, and say for which. `title`: what others are told of this one."""
    # Opened without a cut: what the other one has written there is to be read.
    with lock.open("a+") as file:
        told = None
        while not _taken(file):
            holder = _holder(lock)
            if holder != told:
                print(f"waiting for the build of {holder} to end", flush=True)
                told = holder
            progress.report(f"waiting for the build of {holder} to end")
            time.sleep(_PAUSE_S)
        file.truncate(0)
        file.write(title)
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)


def _taken(file: TextIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(lock: Path) -> str:
    return lock.read_text().strip() or "another image"
