"""GPU samples over time: a sampler's CSV, and the heartbeat lines of a benchmark runner."""

from __future__ import annotations

import re
from dataclasses import dataclass

from modules.facts.parse.errors import ParseError
from modules.facts.parse.text import lines_of, number

_CSV = "telemetry csv"
_RUNNER = "runner log"
_COLUMNS = ("elapsed_s", "power_w", "temp_c", "sm_mhz", "gpu_util")
_HEARTBEAT = re.compile(r"\[[\d:]{8}\]\s+\.\.\. (\S+) running: (\d+)s, GPU (\d+)%, (\d+(?:\.\d+)?)W, (\d+)C, (\d+)MHz")
_END = re.compile(r"\[[\d:]{8}\] ── END (\S+) \((\d+)s\) ──")


@dataclass(frozen=True)
class Sample:
    """Seconds since the start, W, °C, MHz, percent. Utilisation alone says little: 96 % occurs at 42 W and 100 W."""

    seconds: float
    power_w: float
    temperature_c: float
    sm_mhz: float
    utilization_pct: float


@dataclass(frozen=True)
class RunnerLog:
    """`samples` and `seconds`: by test; a test without seconds did not end."""

    samples: dict[str, tuple[Sample, ...]]
    seconds: dict[str, int]


def parse_telemetry(text: str) -> tuple[Sample, ...]:
    """Rows under a header that names its columns; further columns are passed over."""
    lines = [(at, line) for at, line in enumerate(lines_of(text), start=1) if line.strip()]
    names = lines[0][1].split(",") if lines else []
    if not set(_COLUMNS) <= set(names) or len(lines) < 2:
        raise ParseError(_CSV, f"no rows under a header with {', '.join(_COLUMNS)}", text=text)
    samples = []
    for at, line in lines[1:]:
        cells = line.split(",")
        if len(cells) != len(names):
            raise ParseError(_CSV, f"expected {len(names)} cells, got {len(cells)}", line=at, text=line)
        row = dict(zip(names, cells, strict=True))
        samples.append(Sample(*(number(_CSV, row[name], line=at) for name in _COLUMNS)))
    return tuple(samples)


def parse_runner_log(text: str) -> RunnerLog:
    """Heartbeats by test."""
    samples: dict[str, list[Sample]] = {}
    seconds: dict[str, int] = {}
    for line in lines_of(text):
        if beat := _HEARTBEAT.fullmatch(line.strip()):
            elapsed, utilization, power, temperature, clock = (float(beat[index]) for index in range(2, 7))
            sample = Sample(elapsed, power, temperature, clock, utilization)
            samples.setdefault(beat[1], []).append(sample)
        elif end := _END.fullmatch(line.strip()):
            seconds[end[1]] = int(end[2])
    if not samples:
        raise ParseError(_RUNNER, "no heartbeat line", text=text)
    return RunnerLog({test: tuple(found) for test, found in samples.items()}, seconds)
