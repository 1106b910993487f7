"""Imported first by the program: Ctrl-C while it still imports the rest ends it in order, since nothing has begun."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


def _leave(_number: int, _frame: FrameType | None) -> None:
    os.write(2, b"interrupted; nothing was begun\n")
    os._exit(130)


# What a shell starts in the background ignores Ctrl-C, and goes on doing so.
_HEEDED = signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
if _HEEDED:
    signal.signal(signal.SIGINT, _leave)
signal.signal(signal.SIGTERM, _leave)


def heed() -> None:
    """Let SIGTERM interrupt this process as Ctrl-C does, from now on by `KeyboardInterrupt`."""
    if _HEEDED:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@contextmanager
def in_order() -> Iterator[None]:
    """Have Ctrl-C, from now on, end with 130 what has no more to say about it; typer would end with 1."""
    heed()
    try:
        yield
    except KeyboardInterrupt:
        os.write(2, b"interrupted\n")
        raise SystemExit(130) from None
