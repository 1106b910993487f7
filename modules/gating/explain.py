"""Why a gate failed: telemetry, the engine's log and the runs, held against what the catalog knows of such failures."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from modules.facts.parse.llama_benchy import Metric
from modules.gating.direction import lower_is_better
from modules.gating.metrics import SeenFault
from modules.gating.series import Telemetry, figure_of, statistic_of, told
from modules.spec.explanation import DecodeSign, Explanation, SeriesSign
from modules.spec.gate import Threshold

UNKNOWN = "unknown"
_DECODE_OF_ONE = re.compile(r"tg\d+@pp\d+(?: d0)? c1")
# Fewer runs than this have no first one that differs from the others.
_FEWEST_RUNS = 3


@dataclass(frozen=True)
class Case:
    """What was seen while a service was measured.

    `telemetry`: samples, one a second. `log`: the engine's, of this start. `failed`: the metrics that did not pass.
    `model`: as it is served. `streams`: the workload's own requests at a time. `faults`: what no speed makes good.
    `short_by`: the factor by which the failed figure that comes nearest to its fixed bound misses it; None where no
    figure misses one.
    """

    model: str
    streams: int
    metrics: Mapping[str, Metric]
    failed: tuple[str, ...]
    telemetry: Telemetry = field(default_factory=dict)
    log: Sequence[str] = ()
    faults: tuple[SeenFault, ...] = ()
    short_by: float | None = None


@dataclass(frozen=True)
class Cause:
    """A likely cause. `name`: of the catalog's entry; `evidence`: what was seen of each sign, with figures."""

    name: str
    cause: str
    meaning: str
    action: str
    evidence: tuple[str, ...]

    def text(self) -> str:
        """As shown to people."""
        seen = f" ({'; '.join(self.evidence)})" if self.evidence else ""
        return f"likely cause: {self.cause}{seen}\n  {self.meaning}\n  what to do: {self.action}"


def explain(case: Case, explanations: Mapping[str, Explanation]) -> tuple[Cause, ...]:
    """Every likely cause, in the catalog's order, one of a kind; `unknown`, with what was seen, where there is none."""
    found: dict[str, Cause] = {}
    for name, entry in explanations.items():
        evidence = _evidence(case, entry)
        if evidence is not None and entry.cause not in found:
            found[entry.cause] = Cause(name, entry.cause, entry.meaning, entry.action, evidence)
    return tuple(found.values()) or (_unknown(case),)


def _evidence(case: Case, entry: Explanation) -> tuple[str, ...] | None:
    """What is seen of every sign of the entry, or None when one is not there, or they can not explain so much."""
    if entry.explains_up_to is not None and case.short_by is not None and case.short_by > entry.explains_up_to:
        return None
    seen = list(_signs(case, entry))
    return None if any(one is None for one in seen) else tuple(one for one in seen if one is not None)


def _signs(case: Case, entry: Explanation) -> Iterator[str | None]:
    for series in entry.series:
        yield _in_series(case.telemetry, series)
    for pattern in entry.log:
        yield _in_log(case.log, pattern)
    if entry.decode is not None:
        yield _in_decode(case, entry.decode)
    if entry.first_run_slower is not None:
        yield _in_first_run(case, entry.first_run_slower)
    if entry.strangers:
        yield _strangers(case)
    if entry.short_by is not None:
        yield _short_by(case, entry.short_by)
    if entry.fault is not None:
        yield next((f"{one.workload}: {one.told}" for one in case.faults if one.kind == entry.fault), None)


def _in_series(telemetry: Telemetry, sign: SeriesSign) -> str | None:
    value = statistic_of(telemetry, sign.series, sign.statistic, busy=sign.busy)
    if value is None or not _within(value, sign.at_least, sign.below):
        return None
    return told(sign.series, sign.statistic, value)


def _in_log(log: Sequence[str], pattern: str) -> str | None:
    line = next((line.strip() for line in log if re.search(pattern, line)), None)
    return None if line is None else f"the log says: {line[-160:]}"


def _in_decode(case: Case, sign: DecodeSign) -> str | None:
    if case.model != sign.model:
        return None
    single = [metric.mean for name, metric in case.metrics.items() if _DECODE_OF_ONE.fullmatch(name)]
    if not single or not all(_within(value, sign.at_least, sign.below) for value in single):
        return None
    return f"decode of one stream is {min(single):.1f} tok/s"


def _in_first_run(case: Case, share: float) -> str | None:
    for name in case.failed:
        values = case.metrics[name].values if name in case.metrics else ()
        if len(values) < _FEWEST_RUNS or min(values) <= 0:
            continue
        # As times, so that "slower by a share" means the same for speeds.
        times = values if lower_is_better(name) else tuple(1 / value for value in values)
        first, rest = times[0], times[1:]
        middle = statistics.median(rest)
        if first > middle * (1 + share) and max(rest) <= middle * (1 + share / 2):
            return f"{name}: first run {values[0]:.1f}, the others {min(values[1:]):.1f} to {max(values[1:]):.1f}"
    return None


def _short_by(case: Case, factor: float) -> str | None:
    if case.short_by is None or case.short_by < factor:
        return None
    return f"the nearest of the failed figures misses its bound by a factor of {case.short_by:.0f}"


def shortfall(
    thresholds: Mapping[str, Threshold], metrics: Mapping[str, Metric], failed: Sequence[str]
) -> float | None:
    """By which factor the failed figure that is nearest to its fixed bound misses it; None where none misses one."""
    found = []
    for name in failed:
        bound, metric = thresholds.get(name), metrics.get(name)
        if bound is None or metric is None or metric.mean <= 0:
            continue
        found += [bound.min / metric.mean] if bound.min is not None and metric.mean < bound.min else []
        found += [metric.mean / bound.max] if bound.max is not None and metric.mean > bound.max > 0 else []
    return min(found, default=None)


def _strangers(case: Case) -> str | None:
    most = statistic_of(case.telemetry, "requests_running", "p90")
    if most is None or most <= case.streams:
        return None
    return f"{most:g} requests at once, of which the gate sent {case.streams}"


def _within(value: float, least: float | None, below: float | None) -> bool:
    return (least is None or value >= least) and (below is None or value < below)


def _unknown(case: Case) -> Cause:
    seen = tuple(figure for series in case.telemetry if (figure := figure_of(case.telemetry, series)) is not None)
    return Cause(
        UNKNOWN,
        UNKNOWN,
        "nothing that the catalog knows of was seen" + ("" if seen else "; nothing was sampled either"),
        "compare telemetry and log with those of the last good release, and measure again",
        seen,
    )
