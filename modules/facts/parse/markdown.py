"""Rows of the markdown tables that benchmark programs print."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from modules.facts.parse.errors import ParseError

_RULE = re.compile(r"\|(\s*:?-+:?\s*\|)+")
_MEASURED = re.compile(r"(\d+(?:\.\d+)?)\s*(?:±|\+/-)\s*(\d+(?:\.\d+)?)")


@dataclass(frozen=True)
class Measured:
    """Mean and standard deviation over a benchmark's runs."""

    mean: float
    std: float


def rows_of(program: str, lines: Iterable[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and cells by column name, of every row of every table. Too few or too many cells are an error."""
    names: tuple[str, ...] = ()
    last: tuple[str, ...] = ()
    for at, line in enumerate(lines, start=1):
        stripped = line.strip()
        if not stripped.startswith("|"):
            names = last = ()
            continue
        if not stripped.endswith("|"):
            raise ParseError(program, "a table row is cut off", line=at, text=line)
        cells = tuple(cell.strip() for cell in stripped[1:-1].split("|"))
        if _RULE.fullmatch(stripped):
            names = last
        elif names:
            if len(cells) != len(names):
                raise ParseError(program, f"expected {len(names)} cells, got {len(cells)}", line=at, text=line)
            yield at, dict(zip(names, cells, strict=True))
        last = cells


def measured(program: str, cell: str, *, line: int) -> Measured | None:
    """`12.34 ± 0.56`; an empty cell was not measured: None, which is neither zero nor a pass."""
    if not cell:
        return None
    match = _MEASURED.fullmatch(cell)
    if match is None:
        raise ParseError(program, "expected `mean ± deviation`", line=line, text=cell)
    return Measured(float(match[1]), float(match[2]))
