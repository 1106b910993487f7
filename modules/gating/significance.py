"""Whether a difference is one: repeated runs against a bound, another release's runs, or other hosts.

All comparisons are brought to one form, "how much worse, and how well is that known", and then to one rule. A figure
lies on one side of a bound when Student's t says that the other side is improbable; while it does not say so, more
runs are asked for, as long as they can help. docs/gates.md has the method, docs/developing/gates.md how often it errs.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from modules.gating.student import tail

# A median of normal values scatters by this much more than their mean.
_MEDIAN_FACTOR = 1.2533


@dataclass(frozen=True)
class Spread:
    """Standard error of a figure, and the degrees of freedom that it was estimated with."""

    error: float
    freedom: float


EXACT = Spread(0.0, math.inf)


@dataclass(frozen=True)
class Estimate:
    """How much worse (positive) or better (negative) a figure is than what it is held against.

    `own`: what more runs would narrow. `reference`: what they would not.
    """

    worse: float
    own: Spread
    reference: Spread = EXACT

    @property
    def both(self) -> Spread:
        """Of the difference (Welch and Satterthwaite)."""
        parts = [part for part in (self.own, self.reference) if part.error > 0]
        variance = sum(part.error**2 for part in parts)
        if variance == 0:
            return EXACT
        return Spread(math.sqrt(variance), variance**2 / sum(part.error**4 / part.freedom for part in parts))


def otherwise(worse: float, spread: Spread, cut: float) -> float:
    """How probable these runs are when the truth lies on the other side of `cut`; 0.5 when they lie upon it."""
    distance = abs(worse - cut)
    if spread.error == 0:
        return 0.0 if distance else 0.5
    return tail(distance / spread.error, spread.freedom)


def spread_of(values: Sequence[float]) -> Spread:
    """Of the values' mean. Of a workload that makes one run it is not known, and the figure is taken as it is."""
    if len(values) < 2:
        return EXACT
    return Spread(statistics.stdev(values) / math.sqrt(len(values)), len(values) - 1)


def beyond_bound(values: Sequence[float], bound: float, *, lower_is_better: bool) -> Estimate:
    """The mean against a fixed bound, in the metric's own unit."""
    mean = statistics.fmean(values)
    return Estimate(mean - bound if lower_is_better else bound - mean, spread_of(values))


def worse_than(values: Sequence[float], reference: Sequence[float], *, lower_is_better: bool) -> Estimate:
    """The change from another release's runs, as a logarithm: speeds and times scatter in proportion to their size."""
    now, then = _logs(values), _logs(reference)
    change = statistics.fmean(now) - statistics.fmean(then)
    return Estimate(change if lower_is_better else -change, spread_of(now), spread_of(then))


def worse_than_median(values: Sequence[float], others: Sequence[float], *, lower_is_better: bool) -> Estimate:
    """The change from the median of other hosts' means, as a logarithm."""
    now, hosts = _logs(values), _logs(others)
    change = statistics.fmean(now) - statistics.median(hosts)
    mean = spread_of(hosts)
    reference = Spread(mean.error * _MEDIAN_FACTOR, mean.freedom)
    return Estimate(change if lower_is_better else -change, spread_of(now), reference)


def log_share(share: float, *, lower_is_better: bool) -> float:
    """A share as the changes above count it: 5 % longer, or 5 % slower."""
    return math.log1p(share) if lower_is_better else -math.log1p(-share)


def share_of(change: float, *, lower_is_better: bool) -> float:
    """The inverse of `log_share`, also for changes to the better (negative)."""
    return math.expm1(change) if lower_is_better else -math.expm1(-change)


def _logs(values: Sequence[float]) -> list[float]:
    return [math.log(value) for value in values]
