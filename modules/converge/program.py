"""Start a program whose exit statuses mean something: typer's 2 for a wrong option would be read as one of them."""

from __future__ import annotations

from collections.abc import Callable

import typer

REFUSED = 1


def start(main: Callable[..., None]) -> None:
    """Run `main` by the command line. An option or argument that is refused ends with 1, as a fleet file does."""
    for kind in typer.BadParameter.__mro__:
        if kind.__name__ == "UsageError":
            kind.exit_code = REFUSED  # type: ignore[attr-defined]
    typer.run(main)
