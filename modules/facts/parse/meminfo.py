"""/proc/meminfo."""

from __future__ import annotations

import re
from dataclasses import dataclass

from modules.facts.parse.errors import ParseError
from modules.facts.parse.text import lines_of

_PROGRAM = "/proc/meminfo"
_LINE = re.compile(r"(\S+):\s+(\d+)(?: kB)?")


@dataclass(frozen=True)
class Meminfo:
    """In bytes. `available`: what a new program can take without swapping. `cached`: files' pages, 0 where not told."""

    total: int
    free: int
    available: int
    swap_total: int
    swap_free: int
    cached: int = 0


def parse_meminfo(text: str) -> Meminfo:
    """The fields above; all must be there."""
    values: dict[str, int] = {}
    for at, line in enumerate(lines_of(text), start=1):
        if not line.strip():
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise ParseError(_PROGRAM, "expected `Name: number kB`", line=at, text=line)
        values[match[1]] = int(match[2]) * (1024 if line.rstrip().endswith("kB") else 1)
    try:
        total, free, available, swap_total, swap_free = (
            values[key] for key in ("MemTotal", "MemFree", "MemAvailable", "SwapTotal", "SwapFree")
        )
    except KeyError as missing:
        raise ParseError(_PROGRAM, f"no {missing.args[0]}") from missing
    return Meminfo(total, free, available, swap_total, swap_free, cached=values.get("Cached", 0))
