"""The pyinfra command, which also writes what a run has cost.

To the file $ROUND_TRIPS: how many SSH sessions it opened (its round trips). To the file $STAGE_SECONDS, where that is
set, as JSON: stage → seconds of its operations, of all hosts together.
"""

from __future__ import annotations

import atexit
import json
import os
import time
from pathlib import Path
from typing import Any

from pyinfra_cli.main import main  # imported first: it patches the standard library for gevent

import paramiko  # isort: skip
from pyinfra.api import Host, State, operations  # isort: skip

_opened = 0
_open_session = paramiko.Transport.open_session
_seconds: dict[str, float] = {}
_run_host_op = operations.run_host_op


def _counted(self: paramiko.Transport, *arguments: Any, **keywords: Any) -> paramiko.Channel:
    global _opened  # noqa: PLW0603
    _opened += 1
    return _open_session(self, *arguments, **keywords)


def _timed(state: State, host: Host, op_hash: str) -> bool:
    # `Image | Images that are there`
    stage = min(state.get_op_meta(op_hash).names).partition(" | ")[0]
    started = time.perf_counter()
    try:
        return _run_host_op(state, host, op_hash)
    finally:
        _seconds[stage] = _seconds.get(stage, 0.0) + time.perf_counter() - started


def _write() -> None:
    Path(os.environ["ROUND_TRIPS"]).write_text(str(_opened))
    if "STAGE_SECONDS" in os.environ:
        Path(os.environ["STAGE_SECONDS"]).write_text(json.dumps(_seconds))


if __name__ == "__main__":
    paramiko.Transport.open_session = _counted  # type: ignore[method-assign]
    operations.run_host_op = _timed
    atexit.register(_write)
    main()
