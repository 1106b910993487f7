"""`vllm bench serve`: the result block that it prints."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from modules.facts.parse.errors import ParseError
from modules.facts.parse.text import integer, lines_of, number

_PROGRAM = "vllm bench serve"
_HEAD = re.compile(r"=+ Serving Benchmark Result =+")
_END = re.compile(r"={20,}")
_SECTION = re.compile(r"-{3,}.*-{3,}")
_ROW = re.compile(r"([^:]+):\s+(\S+)\s*")
_LATENCY = re.compile(r"(Mean|Median|Std|P\d+(?:\.\d+)?) (TTFT|TPOT|ITL|E2EL) \(ms\)")


@dataclass(frozen=True)
class ServeResult:
    """What one run measured, from the client.

    Durations in s, throughputs per s. `latency_ms`: metric (`ttft`, `tpot`, `itl`, `e2el`) → row (`mean`, `median`,
    `p99`, …) → ms; which percentiles stand depends on the run's flags. `rate` is None for `inf`. `other`: rows of other
    versions and flags, by their printed name.
    """

    completed: int
    failed: int | None
    rate: float | None
    max_concurrency: int | None
    duration: float
    input_tokens: int
    output_tokens: int
    requests_per_second: float
    output_throughput: float
    peak_output_throughput: float | None
    total_throughput: float
    latency_ms: dict[str, dict[str, float]] = field(default_factory=dict)
    other: dict[str, float] = field(default_factory=dict)


def parse_serve_results(text: str) -> tuple[ServeResult, ...]:
    """Every block of a log, in order; a sweep prints several."""
    results = []
    rows: dict[str, tuple[int, str]] | None = None
    for at, line in enumerate(lines_of(text), start=1):
        stripped = line.strip()
        if _HEAD.fullmatch(stripped):
            if rows is not None:
                raise ParseError(_PROGRAM, "a block is cut off before its end", line=at)
            rows = {}
        elif rows is None:
            continue
        elif _END.fullmatch(stripped):
            results.append(_result(rows, at))
            rows = None
        elif stripped and not _SECTION.fullmatch(stripped):
            row = _ROW.fullmatch(stripped)
            if row is None:
                raise ParseError(_PROGRAM, "expected `name: value`", line=at, text=line)
            rows[row[1]] = (at, row[2])
    if rows is not None:
        raise ParseError(_PROGRAM, "the last block is cut off before its end")
    if not results:
        raise ParseError(_PROGRAM, "no result block", text=text)
    return tuple(results)


def parse_serve_result(text: str) -> ServeResult:
    """The result of a log with exactly one run; with several, none of them silently wins."""
    results = parse_serve_results(text)
    if len(results) != 1:
        raise ParseError(_PROGRAM, f"expected one result block, got {len(results)}")
    return results[0]


class _Rows:
    def __init__(self, rows: dict[str, tuple[int, str]], at: int) -> None:
        self._rows = dict(rows)
        self._at = at

    def _take(self, names: tuple[str, ...]) -> tuple[int, str] | None:
        return next((self._rows.pop(name) for name in names if name in self._rows), None)

    def figure(self, *names: str) -> float | None:
        found = self._take(names)
        return None if found is None or found[1] == "inf" else number(_PROGRAM, found[1], line=found[0])

    def count(self, *names: str) -> int | None:
        found = self._take(names)
        return None if found is None else integer(_PROGRAM, found[1], line=found[0])

    def needed(self, *names: str) -> float:
        value = self.figure(*names)
        if value is None:
            raise ParseError(_PROGRAM, f"the block has no row `{names[0]}`", line=self._at)
        return value

    def needed_count(self, *names: str) -> int:
        value = self.count(*names)
        if value is None:
            raise ParseError(_PROGRAM, f"the block has no row `{names[0]}`", line=self._at)
        return value

    def latencies(self) -> dict[str, dict[str, float]]:
        found: dict[str, dict[str, float]] = {}
        for name in [name for name in self._rows if _LATENCY.fullmatch(name)]:
            match = _LATENCY.fullmatch(name)
            if match is not None:
                found.setdefault(match[2].lower(), {})[match[1].lower()] = self.needed(name)
        return found

    def rest(self) -> dict[str, float]:
        return {name: value for name in list(self._rows) if (value := self.figure(name)) is not None}


def _result(block: dict[str, tuple[int, str]], at: int) -> ServeResult:
    rows = _Rows(block, at)
    return ServeResult(
        completed=rows.needed_count("Successful requests"),
        failed=rows.count("Failed requests"),
        rate=rows.figure("Request rate configured (RPS)"),
        max_concurrency=rows.count("Maximum request concurrency"),
        duration=rows.needed("Benchmark duration (s)"),
        input_tokens=rows.needed_count("Total input tokens"),
        output_tokens=rows.needed_count("Total generated tokens"),
        requests_per_second=rows.needed("Request throughput (req/s)"),
        output_throughput=rows.needed("Output token throughput (tok/s)"),
        peak_output_throughput=rows.figure("Peak output token throughput (tok/s)"),
        total_throughput=rows.needed("Total token throughput (tok/s)", "Total Token throughput (tok/s)"),
        latency_ms=rows.latencies(),
        other=rows.rest(),
    )
