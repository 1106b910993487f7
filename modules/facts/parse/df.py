"""`df`, in any unit."""

from __future__ import annotations

import re
from dataclasses import dataclass

from modules.facts.parse.errors import ParseError
from modules.facts.parse.text import lines_of, size

_PROGRAM = "df"
_HEADER = re.compile(r"Filesystem\s+(?:Type\s+)?(\S+)\s+Used\s+Avail(?:able)?\s+(?:Use%|Capacity)\s+Mounted on")
_ROW = re.compile(r"(\S+)\s+(\S+)\s+(\S+)\s+(\d+%|-)\s+(/.*|-)$")


@dataclass(frozen=True)
class Filesystem:
    """Sizes in bytes, as exact as the output was. `used_pct` is None where df prints `-`."""

    source: str
    size: int
    used: int
    available: int
    used_pct: int | None
    mount: str


def parse_df(text: str) -> tuple[Filesystem, ...]:
    """Every row; a long source may push its numbers to the next line."""
    found: list[Filesystem] = []
    unit: str | None = None
    source: str | None = None
    for at, line in enumerate(lines_of(text), start=1):
        if not line.strip():
            continue
        if header := _HEADER.fullmatch(line.strip()):
            unit = header[1]
            continue
        if unit is None:
            continue
        first, _, rest = line.strip().partition(" ")
        if source is None and not rest.strip():
            source = first
            continue
        row = _ROW.search(line if source is None else line.strip())
        if row is None:
            raise ParseError(_PROGRAM, "expected size, used, available, percent and mount point", line=at, text=line)
        total, used, available = (_bytes(row[index], unit, at) for index in (1, 2, 3))
        percent = None if row[4] == "-" else int(row[4].rstrip("%"))
        found.append(Filesystem(source or first, total, used, available, percent, row[5]))
        source = None
    if source is not None or not found:
        raise ParseError(_PROGRAM, "no complete row", text=text)
    return tuple(found)


def _bytes(value: str, unit: str, at: int) -> int:
    blocks = re.fullmatch(r"(\d+)([KMG]?)B?-blocks", unit)
    if blocks is None:
        return size(_PROGRAM, value, line=at)
    return size(_PROGRAM, value, line=at) * int(blocks[1]) * {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}[blocks[2]]
