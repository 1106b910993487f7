"""`free`, in bytes or human-readable."""

from __future__ import annotations

from dataclasses import dataclass

from modules.facts.parse.errors import ParseError
from modules.facts.parse.text import lines_of, size

_PROGRAM = "free"
_COLUMNS = ("total", "used", "free", "shared", "buff/cache", "available")


@dataclass(frozen=True)
class Free:
    """In bytes, as exact as the output was: `121Gi` may be up to half a GiB more or less."""

    total: int
    used: int
    free: int
    shared: int
    cache: int
    available: int
    swap_total: int
    swap_used: int
    swap_free: int


def parse_free_all(text: str) -> tuple[Free, ...]:
    """Every table in a text (a script may have asked several hosts). Values are taken by order, not by position."""
    found: list[Free] = []
    memory: list[int] | None = None
    headed = False
    for at, line in enumerate(lines_of(text), start=1):
        words = line.split()
        if words == list(_COLUMNS):
            if headed:
                raise ParseError(_PROGRAM, "a table is cut off", line=at)
            headed, memory = True, None
        elif headed and words and words[0] == "Mem:":
            memory = _sizes(words, len(_COLUMNS), at, line)
        elif headed and words and words[0] == "Swap:":
            if memory is None:
                raise ParseError(_PROGRAM, "a Swap line without its Mem line", line=at, text=line)
            found.append(Free(*memory, *_sizes(words, 3, at, line)))
            headed = False
    if headed or not found:
        raise ParseError(_PROGRAM, "no complete table (header, Mem, Swap)", text=text)
    return tuple(found)


def parse_free(text: str) -> Free:
    """The table of one host."""
    found = parse_free_all(text)
    if len(found) != 1:
        raise ParseError(_PROGRAM, f"expected one table, got {len(found)}")
    return found[0]


def _sizes(words: list[str], count: int, at: int, line: str) -> list[int]:
    if len(words) != count + 1:
        raise ParseError(_PROGRAM, f"expected {count} values", line=at, text=line)
    return [size(_PROGRAM, word, line=at) for word in words[1:]]
