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


def tell_pass(done: Pass) -> None:
    """What a pass did, or would do."""
    if done.interrupted:
        say(done.left.text(), "yellow")
        return
    if done.finished or done.outcome.failed or done.outcome.refused:
        for line, style in summary(done.outcome, done.errors, dry=done.dry):
            say(line, style)
    if not done.finished:
        say(f"no host finished ({done.seconds:.1f} s); the cause stands above", "red")
    else:
        say(f"took {done.seconds:.1f} s", "dim")


def say_what_follows(unsure: Sequence[str]) -> None:
    """Between the dry run and the change. `unsure`: hosts that could not be looked at wholly."""
    if unsure:
        say(f"{', '.join(unsure)}: looked at anew, once our programs are there", "yellow")
    say("nothing was changed yet; now the change, and what follows from it", "dim")
