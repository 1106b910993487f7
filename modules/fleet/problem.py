"""What is wrong with a fleet file, and where."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

Key = tuple[str | int, ...]
# The line of what is wrong with a file as such, and with none of its lines.
WHOLE = 0


@dataclass(frozen=True)
class Origin:
    """A place in a file: `line` counts from 1, or is `WHOLE`; `key` is the path of keys that leads there."""

    line: int
    key: Key = ()

    def under(self, *key: str | int) -> Origin:
        """Name a key below this place, which the file does not have."""
        return Origin(self.line, (*self.key, *key))


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong, and what to do about it."""

    origin: Origin
    what: str
    todo: str

    def told(self, file: str) -> str:
        """Put the problem into one line: `file:line: key.path: what is wrong; what to do`."""
        key = dotted(self.origin.key)
        place = file if self.origin.line == WHOLE else f"{file}:{self.origin.line}"
        return f"{place}: {f'{key}: ' if key else ''}{self.what}; {self.todo}"


def dotted(key: Key) -> str:
    """Write a path of keys as `a.b[0].c`."""
    text = ""
    for part in key:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


class FleetError(Exception):
    """A fleet file that is refused, with all that is wrong with it."""

    def __init__(self, path: Path, problems: Iterable[Problem]) -> None:
        self.path = path
        self.problems = tuple(sorted(set(problems), key=_order))
        super().__init__("\n".join(problem.told(shown(path)) for problem in self.problems))


def _order(problem: Problem) -> tuple[int, str, str, str]:
    return (problem.origin.line, dotted(problem.origin.key), problem.what, problem.todo)


def shown(path: Path) -> str:
    """Give the path as the user would type it from here."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
