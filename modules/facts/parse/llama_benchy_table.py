"""llama-benchy's markdown table, alone or at the end of a run's output.

Three layouts are about: with concurrency above 1 (total, per request and both peaks), without (`t/s`, `peak t/s`), and
that of versions before 0.2 (`t/s`, no peak).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from modules.facts.parse.errors import ParseError
from modules.facts.parse.markdown import Measured, measured, rows_of
from modules.facts.parse.text import lines_of

_PROGRAM = "llama-benchy"
_TEST = re.compile(r"(ctx_)?(pp|tg)(\d*)(?: @ d(\d+))?(?: \(c(\d+)\))?")
_VERSION = re.compile(r"llama-benchy \((\S+)\)")
_LATENCY = re.compile(r"Average latency \((\w+)\): (\d+(?:\.\d+)?) ms")
_TOKENIZER = re.compile(r"Falling back to '(\S+)' tokenizer as approximation")
_TOTAL = ("t/s (total)", "t/s")


@dataclass(frozen=True)
class Row:
    """A row. `size`: tokens of prompt or reply, None for a context phase. Throughputs in tokens/s, times in ms.

    None: the cell was empty, so it was not measured; that is neither zero nor a pass. Rows are kept in order: the same
    test may stand several times, once for each prompt size.
    """

    model: str
    kind: Literal["pp", "tg"]
    size: int | None
    depth: int
    concurrency: int
    context_phase: bool
    total: Measured | None
    request: Measured | None
    peak: Measured | None
    peak_request: Measured | None
    ttfr_ms: Measured | None
    est_ppt_ms: Measured | None
    e2e_ttft_ms: Measured | None


@dataclass(frozen=True)
class Tables:
    """`fallback_tokenizer`: the model's own was not found, so token counts are approximate."""

    version: str | None
    latency_ms: float | None
    fallback_tokenizer: str | None
    rows: tuple[Row, ...]


def parse_benchy_table(text: str) -> Tables:
    """Every row of every table; errors of a tokenizer may stand before a good table."""
    lines = lines_of(text)
    rows = tuple(_row(cells, at) for at, cells in rows_of(_PROGRAM, lines))
    if not rows:
        raise ParseError(_PROGRAM, "no table", text=next((line for line in reversed(lines) if line.strip()), ""))
    latency = _first(_LATENCY, text)
    version, tokenizer = _first(_VERSION, text), _first(_TOKENIZER, text)
    return Tables(
        version=None if version is None else version[1],
        latency_ms=None if latency is None else float(latency[2]),
        fallback_tokenizer=None if tokenizer is None else tokenizer[1],
        rows=rows,
    )


def _first(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return pattern.search(text)


def _row(cells: dict[str, str], at: int) -> Row:
    test = _TEST.fullmatch(cells.get("test", ""))
    total = next((name for name in _TOTAL if name in cells), None)
    if test is None or total is None or "model" not in cells:
        raise ParseError(_PROGRAM, "expected the columns model, test and t/s", line=at, text=" | ".join(cells))

    def cell(name: str) -> Measured | None:
        return measured(_PROGRAM, cells.get(name, ""), line=at)

    return Row(
        model=cells["model"],
        kind="pp" if test[2] == "pp" else "tg",
        size=int(test[3]) if test[3] else None,
        depth=int(test[4] or 0),
        concurrency=int(test[5] or 1),
        context_phase=test[1] is not None,
        total=cell(total),
        request=cell("t/s (req)"),
        peak=cell("peak t/s"),
        peak_request=cell("peak t/s (req)"),
        ttfr_ms=cell("ttfr (ms)"),
        est_ppt_ms=cell("est_ppt (ms)"),
        e2e_ttft_ms=cell("e2e_ttft (ms)"),
    )
