"""What the operator reads of a run, on standard error."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from modules.converge.drift import HostDrift, drift_lines
from modules.converge.run import Pass
from modules.converge.summary import summary

_console = Console(stderr=True, highlight=False)


def say(text: str, style: str) -> None:
    """Print a line as it is; `style` in rich's words."""
    _console.print(text, style=style, markup=False, soft_wrap=True)


def tell_drift(drift: Sequence[HostDrift], seconds: float) -> None:
    """What differs, thing by thing."""
    for line, style in drift_lines(drift):
        say(line, style)
    say(f"took {seconds:.1f} s", "dim")


def tell_pass(done: Pass, *, first: bool = False) -> None:
    """What a pass did, or would do. `first`: it is the dry run before a change, and no more is to be said of none."""
    if done.interrupted:
        say(done.left.text(), "yellow")
        return
    if done.finished or done.outcome.failed or done.outcome.refused:
        for line, style in summary(done.outcome, done.errors, dry=done.dry):
            say(line, style)
    if not done.finished:
        say(f"no host finished ({done.seconds:.1f} s); the cause stands above", "red")
    elif not first or not done.outcome.changed:
        say(f"took {done.seconds:.1f} s", "dim")
    if first and done.finished and done.outcome.changed:
        say(
            f"nothing was changed yet ({done.seconds:.1f} s); now the change, and what follows from it",
            "dim",
        )
