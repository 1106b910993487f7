"""Ctrl-C in the process of pyinfra.

A signal's handler runs in whatever greenlet is at work. What it raises there, as pyinfra's own handler does, ends
the run only in the main greenlet: in another it is that greenlet's failure, and in gevent's hub before its loop has
begun it leaves a hub that switches nowhere any more, so that pyinfra ends in tracebacks.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType

import gevent
from greenlet import getcurrent

# As a shell tells of a process that SIGINT ended.
STATUS = 130


def end_run(status: int = STATUS) -> None:
    """End this process by `SystemExit(status)` in its main greenlet: at once, or when its hub next turns."""
    here = getcurrent()
    main = here
    while main.parent is not None:
        main = main.parent
    if here is main:
        raise SystemExit(status)
    gevent.get_hub().loop.run_callback_threadsafe(main.throw, SystemExit(status))


def end_run_at_ctrl_c() -> None:
    """Have SIGINT end the run (in the main thread only: elsewhere, whoever embeds this process handles signals)."""
    try:
        signal.signal(signal.SIGINT, _on_interrupt)
    except ValueError:
        return
    # `modules.converge` starts pyinfra with signals held back.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})


def _on_interrupt(_number: int, _frame: FrameType | None) -> None:
    # What was not imported has begun nothing, and this is no place to import it.
    unattended = sys.modules.get("modules.operations.unattended")
    if unattended is None:
        end_run()
    else:
        unattended.leave({})
