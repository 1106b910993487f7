"""Fleet files and a limit, as they stand on a command line → the hosts that are asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from modules.converge.limits import hosts_within, limit_problem, names_of
from modules.fleet import Fleet, load_fleet


class RefusedError(ValueError):
    """What was asked for is nothing that there is."""


def fleets_of(paths: Iterable[Path]) -> list[Fleet]:
    """The fleets of these files; without any, the process's own. Raises `FleetError`."""
    return [load_fleet(path) for path in dict.fromkeys(paths)] or [load_fleet()]


def hosts_of(fleets: Sequence[Fleet], limit: Sequence[str]) -> list[list[str]]:
    """The hosts of each fleet within the limit, which has to mean something in one of them at least.

    Raises `RefusedError`: it means nothing.
    """
    problems = [limit_problem(limit, one) for one in fleets]
    if all(problems):
        raise RefusedError("\n".join(problem for problem in problems if problem))
    names = names_of(limit)
    return [[] if problem else hosts_within(names, one) for one, problem in zip(fleets, problems, strict=True)]
