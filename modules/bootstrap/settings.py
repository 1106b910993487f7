"""The fleet file of a fleet that nobody has logged in to yet: its key and its known hosts may still be missing."""

from __future__ import annotations

from pathlib import Path

from modules.bootstrap.own_keys import make_key
from modules.fleet import Fleet, FleetError, load_fleet
from modules.fleet.resolve import NO_FILE

_MADE = {("ssh", "key"), ("ssh", "known_hosts")}


def fleet_to_begin() -> tuple[Fleet, list[Path]]:
    """Load the fleet, and make the keys and files of known hosts that it names and that are not there.

    Returns what was made, too. Raises `FleetError`: something else is wrong with it; nothing was made then.
    """
    try:
        return load_fleet(), []
    except FleetError as error:
        missing = {problem: problem.what.removeprefix(NO_FILE) for problem in error.problems
                   if problem.origin.key[-2:] in _MADE and problem.what.startswith(NO_FILE)}  # fmt: skip
        others = [problem for problem in error.problems if problem not in missing]
        if others:
            raise FleetError(error.path, others) from None
    made: dict[Path, None] = {}
    for problem, path in missing.items():
        if Path(path) not in made:
            made[Path(path)] = None
            _make(Path(path), problem.origin.key[-1] == "key")
    return load_fleet(), list(made)


def _make(path: Path, key: bool) -> None:
    if key:
        make_key(path)
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(mode=0o600)
