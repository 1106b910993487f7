"""Small readers that several parsers share."""

from __future__ import annotations

import re

from modules.facts.parse.errors import ParseError

# Engines colour their logs, and progress bars rewrite one line many times.
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_UNITS = {"": 1, "B": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}
_SIZE = re.compile(r"(?P<number>\d+(?:[.,]\d+)?)\s?(?:(?P<unit>[KMGTP])i?)?B?")


def lines_of(text: str) -> list[str]:
    """The lines as a terminal shows them in the end: without colours, and of a progress bar its last state."""
    return [line.rstrip("\r").rpartition("\r")[2] for line in _ANSI.sub("", text).split("\n")]


def number(program: str, text: str, *, line: int | None = None) -> float:
    """A finite decimal number, with `.` or `,` as its decimal sign."""
    if not re.fullmatch(r"[+-]?\d+(?:[.,]\d+)?(?:[eE][+-]?\d+)?", text.strip()):
        raise ParseError(program, "expected a number", line=line, text=text)
    return float(text.strip().replace(",", "."))


def integer(program: str, text: str, *, line: int | None = None) -> int:
    """A whole number; `1,234,567` is accepted."""
    if not re.fullmatch(r"[+-]?(?:\d+|\d{1,3}(?:,\d{3})+)", text.strip()):
        raise ParseError(program, "expected a whole number", line=line, text=text)
    return int(text.strip().replace(",", ""))


def size(program: str, text: str, *, line: int | None = None) -> int:
    """Bytes of a size such as `4.9Gi`, `4,9Gi`, `2.0M`, `89093MiB` or `128452014080`, in powers of 1024."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ParseError(program, "expected a size", line=line, text=text)
    return round(float(match["number"].replace(",", ".")) * _UNITS[match["unit"] or ""])
