"""What the operator reads of a run, on standard error."""

from __future__ import annotations

from rich.console import Console

from modules.converge.run import Pass
from modules.converge.summary import summary

_console = Console(stderr=True, highlight=False)


def say(text: str, style: str) -> None:
    """Print a line as it is; `style` in rich's words."""
    _console.print(text, style=style, markup=False, soft_wrap=True)


def tell_pass(done: Pass, *, first: bool = False) -> None:
    """What a pass did, or would do. `first`: it is the dry run before a change, and no more is to be said of none."""
    if done.interrupted:
        say("interrupted; jobs that run on hosts go on, and the next run picks them up", "yellow")
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
            f"nothing was changed yet (looked for {done.seconds:.1f} s). Now the change; what follows from it comes with it",
            "dim",
        )
