"""A small decode benchmark: one line a run, and the mean of the warm ones."""

from __future__ import annotations

import re
from dataclasses import dataclass

from modules.facts.parse.errors import ParseError
from modules.facts.parse.text import lines_of

_PROGRAM = "decode bench"
_RUN = re.compile(r"run (\d+): TTFT (\d+\.\d+)s, decode (\d+\.\d+) tok/s \((\d+) tokens by usage, total (\d+\.\d+)s\)")
_WARM = re.compile(r"WARM AVG: TTFT (\d+\.\d+)s, decode (\d+\.\d+) tok/s over (\d+) runs")


@dataclass(frozen=True)
class DecodeRun:
    """Times in s, speed in tokens/s."""

    ttft: float
    speed: float
    tokens: int
    total: float


@dataclass(frozen=True)
class DecodeBench:
    """`warm_runs` are counted without the first, which warms up."""

    runs: tuple[DecodeRun, ...]
    warm_ttft: float
    warm_speed: float
    warm_runs: int


def parse_decode_bench(text: str) -> DecodeBench:
    """A bench that reached its closing line."""
    lines = [line.strip() for line in lines_of(text)]
    runs = [match for line in lines if (match := _RUN.fullmatch(line))]
    warm = next((match for line in lines if (match := _WARM.fullmatch(line))), None)
    if warm is None or not runs:
        raise ParseError(_PROGRAM, "no runs or no closing line with their mean", text=text)
    found = tuple(DecodeRun(float(run[2]), float(run[3]), int(run[4]), float(run[5])) for run in runs)
    return DecodeBench(found, float(warm[1]), float(warm[2]), int(warm[3]))
