"""Several measurements of the same workload and release → one with all their runs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from modules.facts.parse.llama_benchy import Metric
from modules.gating.metrics import Measurement


def pooled(measurements: Sequence[Measurement]) -> Measurement:
    """All runs together. What one of them lacks is missing: more runs can not make up for one that failed."""
    missing = {name: why for measurement in measurements for name, why in measurement.missing.items()}
    names = dict.fromkeys(name for measurement in measurements for name in measurement.metrics if name not in missing)
    lacking = {name for name in names if any(name not in measurement.metrics for measurement in measurements)}
    metrics = {name: _together([one.metrics[name] for one in measurements]) for name in names if name not in lacking}
    return Measurement(metrics, missing | dict.fromkeys(sorted(lacking), "not measured in every repetition"))


def _together(metrics: Sequence[Metric]) -> Metric:
    values = tuple(value for metric in metrics for value in metric.values)
    return Metric(statistics.fmean(values), statistics.pstdev(values), values)
