"""Which known failures a host's logs show, and by which lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from modules.diagnosis.bundle import Log
from modules.spec.signature import Signature


@dataclass(frozen=True)
class Evidence:
    """A line that a pattern was found in. `line`: 1-based; `count`: how many lines of that log have it."""

    log: str
    line: int
    text: str
    count: int = 1


@dataclass(frozen=True)
class Match:
    """A signature whose every pattern was found. `place`: of the earliest line, by log and number."""

    name: str
    signature: Signature
    evidence: tuple[Evidence, ...]
    place: tuple[int, int]


def matches(signatures: Mapping[str, Signature], logs: Sequence[Log]) -> dict[str, Match]:
    """Every signature that the logs show, whatever it is worth by itself."""
    found = (_match(name, signature, logs) for name, signature in signatures.items())
    return {match.name: match for match in found if match is not None}


def _match(name: str, signature: Signature, logs: Sequence[Log]) -> Match | None:
    own = [(at, log) for at, log in enumerate(logs) if log.kind in signature.where]
    if any(_first(pattern, own, last=False) for pattern in signature.unless):
        return None
    evidence = []
    places = []
    for pattern in signature.patterns:
        place = _first(pattern, own, last=signature.last)
        if place is None:
            return None
        at, line = place
        log = logs[at]
        places.append(place)
        evidence.append(Evidence(log.name, line + 1, log.lines[line].strip(), _count(pattern, log.lines)))
    return Match(name, signature, tuple(dict.fromkeys(evidence)), min(places))


def _first(pattern: str, logs: Iterable[tuple[int, Log]], *, last: bool) -> tuple[int, int] | None:
    expression = re.compile(pattern)
    for at, log in logs:
        lines: Iterable[tuple[int, str]] = enumerate(log.lines)
        if last:
            lines = _last(log.lines)
        for number, line in lines:
            if expression.search(line):
                return at, number
    return None


def _last(lines: Sequence[str]) -> list[tuple[int, str]]:
    """The last line that is not empty."""
    return next(([(at, lines[at])] for at in range(len(lines) - 1, -1, -1) if lines[at].strip()), [])


def _count(pattern: str, lines: Iterable[str]) -> int:
    return sum(re.search(pattern, line) is not None for line in lines)
