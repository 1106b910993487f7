"""Start a program whose exit statuses mean something: typer's 2 for a wrong option would be read as one of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import typer

REFUSED = 1


def start(main: Callable[..., None]) -> None:
    """Run `main` by the command line. An option or argument that is refused ends with 1, as a fleet file does."""
    for kind in typer.BadParameter.__mro__:
        if kind.__name__ == "UsageError":
            kind.exit_code = REFUSED  # type: ignore[attr-defined]
    typer.run(main)


def start_and_leave(main: Callable[..., None]) -> None:
    """As `start`, of a program that asks hosts side by side: nobody waits for what still waits for a silent one."""
    try:
        start(main)
    except SystemExit as end:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(end.code if isinstance(end.code, int) else 1)
