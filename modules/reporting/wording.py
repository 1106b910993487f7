"""Metrics and figures as people read them."""

from __future__ import annotations

import re
from dataclasses import dataclass

_CELL = re.compile(r"(?:(?P<kind>tg(?P<tg>\d+)@|ttfr@)?pp(?P<pp>\d+))(?: d(?P<depth>\d+))? c(?P<streams>\d+)")


@dataclass(frozen=True)
class Wording:
    """`title`: what is measured; `detail`: on what workload."""

    title: str
    detail: str


def wording_of(metric: str) -> Wording:
    """A metric's name in words; names of a form that is not known stay as they are."""
    cell = _CELL.fullmatch(metric)
    if cell is None:
        return Wording(metric[:1].upper() + metric[1:], "")
    streams = int(cell["streams"])
    parts = [f"{int(cell['pp']):,}-token prompt"]
    parts += [f"after {int(cell['depth']):,} tokens of context"] if cell["depth"] else []
    parts += ["one stream" if streams == 1 else f"{streams} streams"]
    if cell["tg"]:
        return Wording("Decode", f"{int(cell['tg']):,} tokens, {', '.join(parts)}")
    return Wording("Prefill" if cell["kind"] is None else "First answer", ", ".join(parts))


def amount(value: float) -> str:
    """To four digits at most, with thousands set apart: 4,716 and 59.22 and 0.51."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 100 else f"{value:.2f}"


def share(change: float) -> str:
    """A change with its sign, in percent: +3.1 %."""
    rounded = round(100 * change, 1)
    return f"{rounded:+.1f} %" if rounded else "±0.0 %"
