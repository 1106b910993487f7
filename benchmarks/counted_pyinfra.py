"""The pyinfra command, which also writes how many SSH sessions it opened (its round trips) to the file $ROUND_TRIPS."""

from __future__ import annotations

import atexit
import os
from pathlib import Path
from typing import Any

from pyinfra_cli.main import main  # imported first: it patches the standard library for gevent

import paramiko  # isort: skip

_opened = 0
_open_session = paramiko.Transport.open_session


def _counted(self: paramiko.Transport, *arguments: Any, **keywords: Any) -> paramiko.Channel:
    global _opened  # noqa: PLW0603
    _opened += 1
    return _open_session(self, *arguments, **keywords)


if __name__ == "__main__":
    paramiko.Transport.open_session = _counted  # type: ignore[method-assign]
    atexit.register(lambda: Path(os.environ["ROUND_TRIPS"]).write_text(str(_opened)))
    main()
