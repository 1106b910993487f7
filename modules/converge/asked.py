"""The fleet that a program was asked to work on, and how it says that it does not."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from modules.converge.limits import limit_problem
from modules.converge.program import REFUSED
from modules.converge.tell import say
from modules.fleet import Fleet, FleetError, load_fleet


def refused(text: str) -> typer.Exit:
    """Say why nothing is done; to be raised."""
    say(text, "red")
    return typer.Exit(REFUSED)


def asked_fleet(limit: Sequence[str] | None) -> Fleet:
    """The fleet that TINDERBOX_FLEET names. Raises `typer.Exit`: its file, or a limit to its hosts, was refused."""
    try:
        fleet = load_fleet()
    except FleetError as error:
        raise refused(str(error)) from error
    problem = limit_problem(limit or [], fleet)
    if problem is not None:
        raise refused(problem)
    return fleet
