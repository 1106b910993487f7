"""Python exceptions in the logs of engines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# `(EngineCore pid=185) ERROR 08-07 21:51:35 [core.py:1330] ` and `[2026-06-07 11:57:00 TP0] `
_PROCESS = re.compile(r"\((\w[^()]* pid=\d+)\) ?")
_LEVEL = re.compile(r"(?:(INFO|WARNING|ERROR|DEBUG|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d \[([^\]]+)\] ?)")
_STAMP = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^\]]*\] ?")
_RAISED = re.compile(r"((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Failure))(?:: (.*))?")
_EXCEPTION = re.compile(r"(Exception)(?:: (.*))?")


@dataclass(frozen=True)
class Entry:
    """A line of an engine's log: which process wrote it, at which level, from which source line, and what."""

    at: int
    process: str | None
    level: str | None
    source: str | None
    text: str


@dataclass(frozen=True)
class Raised:
    """An exception as it stands at the end of a traceback. `detail`: the lines that its message goes on with."""

    kind: str
    message: str
    process: str | None
    line: int
    detail: tuple[str, ...] = ()


def entries(lines: Sequence[str]) -> Iterator[Entry]:
    """The lines with their prefixes taken off; several processes' lines may interleave."""
    for at, line in enumerate(lines, start=1):
        rest, process, level, source = line, None, None, None
        if match := _PROCESS.match(rest):
            process, rest = match[1], rest[match.end() :]
        if match := _LEVEL.match(rest):
            level, source, rest = match[1], match[2], rest[match.end() :]
        elif match := _STAMP.match(rest):
            source, rest = match[0].strip(), rest[match.end() :]
        yield Entry(at, process, level, source, rest)


def raised(log: Sequence[Entry]) -> Iterator[Raised]:
    """Exceptions in the order in which they were written. Warnings that name an exception class are not among them."""
    for index, entry in enumerate(log):
        if entry.level in {"INFO", "WARNING", "DEBUG"}:
            continue
        match = _RAISED.fullmatch(entry.text.rstrip()) or _EXCEPTION.fullmatch(entry.text.rstrip())
        if match is not None:
            detail = tuple(_continuation(log[index + 1 : index + 6], entry))
            yield Raised(match[1], (match[2] or "").strip(), entry.process, entry.at, detail)


def _continuation(following: Sequence[Entry], first: Entry) -> Iterator[str]:
    for entry in following:
        text = entry.text.strip()
        same = (entry.process, entry.level, entry.source) == (first.process, first.level, first.source)
        if not same or not text or text.startswith(("Traceback", "File ", "During handling", "The above exception")):
            return
        if _RAISED.fullmatch(text) is not None:
            return
        yield text
