"""llama.cpp's `llama-bench`, markdown output."""

from __future__ import annotations

import re
from dataclasses import dataclass

from modules.facts.parse.errors import ParseError
from modules.facts.parse.markdown import Measured, measured, rows_of
from modules.facts.parse.text import lines_of

_PROGRAM = "llama-bench"
_DEVICE = re.compile(r"\s*Device \d+: (.+?), compute capability (\d+\.\d+),.*?(?:VRAM: (\d+) MiB)?$")
_BUILD = re.compile(r"build: ([0-9a-f]+) \((\d+)\)")
_FAILED = re.compile(r".*(?:error: failed|failed to load model|error loading model).*")


@dataclass(frozen=True)
class BenchRow:
    """One test, e.g. `pp512` or `tg128 @ d4096`, in tokens/s."""

    model: str
    test: str
    speed: Measured


@dataclass(frozen=True)
class LlamaBench:
    """`devices`: name and compute capability. `build`: commit."""

    devices: tuple[tuple[str, str], ...]
    build: str
    rows: tuple[BenchRow, ...]


def parse_llama_bench(text: str) -> LlamaBench:
    """Devices, rows and build; without the closing build line the run did not finish."""
    lines = lines_of(text)
    for at, line in enumerate(lines, start=1):
        if _FAILED.fullmatch(line):
            raise ParseError(_PROGRAM, "it failed", line=at, text=line)
    rows = []
    for at, cells in rows_of(_PROGRAM, lines):
        speed = measured(_PROGRAM, cells.get("t/s", ""), line=at)
        if "test" not in cells or "model" not in cells or speed is None:
            raise ParseError(_PROGRAM, "expected the columns model, test and t/s", line=at)
        rows.append(BenchRow(cells["model"], cells["test"], speed))
    build = next((match for line in lines if (match := _BUILD.fullmatch(line.strip()))), None)
    if build is None or not rows:
        raise ParseError(_PROGRAM, "no rows or no closing build line: the run did not finish", text=text)
    devices = tuple((match[1], match[2]) for line in lines if (match := _DEVICE.fullmatch(line)))
    return LlamaBench(devices, build[1], tuple(rows))
