"""Statistics of what was sampled once a second."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from modules.spec.explanation import Statistic

Telemetry = Mapping[str, Sequence[float | None]]
"""Series by name (`modules.spec.explanation.Series`), of one length; None where nothing could be read."""

# A GPU used less than this has idle clocks and idle power by right.
BUSY_PERCENT = 50
_WORDS: dict[str, tuple[str, str]] = {
    "clock_mhz": ("clock", "MHz"),
    "power_w": ("power", "W"),
    "temperature_c": ("temperature", "°C"),
    "utilisation_percent": ("GPU in use", "%"),
    "memory_available_gib": ("memory available", "GiB"),
    "swap_used_gib": ("swap in use", "GiB"),
    "other_gpu_processes": ("other processes on the GPU", ""),
    "other_cpu_percent": ("processor in use by others", "%"),
    "requests_running": ("requests running", ""),
    "requests_waiting": ("requests waiting", ""),
    "kv_usage_percent": ("KV cache in use", "%"),
    "preemptions": ("preemptions", ""),
}


def title_of(series: str) -> str:
    """A series' name as people read it."""
    return _WORDS.get(series, (series.replace("_", " "), ""))[0]


def unit_of_series(series: str) -> str:
    """Its unit; empty for counts."""
    return _WORDS.get(series, ("", ""))[1]


def statistic_of(telemetry: Telemetry, series: str, statistic: Statistic, *, busy: bool = False) -> float | None:
    """One statistic, or None where there is no sample to take it of."""
    values = _known(telemetry, series, busy=busy)
    if not values:
        return None
    ordered = sorted(values)
    match statistic:
        case "min" | "p10" | "median" | "p90" | "max":
            return _rank(ordered, {"min": 0.0, "p10": 0.1, "median": 0.5, "p90": 0.9, "max": 1.0}[statistic])
        case "fall":
            high = _rank(ordered, 0.9)
            return (high - _rank(ordered, 0.1)) / high if high > 0 else None
        case "rise":
            return values[-1] - values[0]


def told(series: str, statistic: Statistic, value: float) -> str:
    """A statistic with its series and unit, as people read it."""
    name, unit = title_of(series), unit_of_series(series)
    if statistic == "fall":
        return f"{name} fell by {value * 100:.0f} %"
    amount = f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"
    return f"{name} {'rose by ' if statistic == 'rise' else ''}{amount} {unit}".rstrip()


def figure_of(telemetry: Telemetry, series: str) -> str | None:
    """Least, middle and greatest of a series, as people read it."""
    values = _known(telemetry, series, busy=False)
    if not values:
        return None
    amounts = f"{statistics.median(values):g} {unit_of_series(series)}".rstrip()
    return f"{title_of(series)} {amounts} ({min(values):g} to {max(values):g})"


def _known(telemetry: Telemetry, series: str, *, busy: bool) -> list[float]:
    values = telemetry.get(series, ())
    if busy:
        use = telemetry.get("utilisation_percent", ())
        values = [value for value, used in zip(values, use, strict=False) if used is not None and used >= BUSY_PERCENT]
    return [value for value in values if value is not None and math.isfinite(value)]


def _rank(ordered: Sequence[float], share: float) -> float:
    return ordered[round(share * (len(ordered) - 1))]
