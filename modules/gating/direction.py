"""Which way is better for a metric, by its name."""

from __future__ import annotations

import re

# Times and failures; all else that a gate measures is a speed, or a count of what went well.
_LOWER = re.compile(r"ttfr|ttft|tpot|itl|e2el|latency|duration|seconds|launch|loading|capture|failed|errors|\bcold\b")


def lower_is_better(metric: str) -> bool:
    """True for times and failures, false for speeds and successes."""
    return _LOWER.search(metric.lower()) is not None


def unit_of(metric: str) -> str:
    """The unit that a metric is kept in: `ms` for latencies, `s` for starts, else `tok/s`."""
    if metric.startswith("cold start"):
        return "s"
    if metric.endswith("request throughput"):
        return "requests/s"
    return "ms" if lower_is_better(metric) else "tok/s"
