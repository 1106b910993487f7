"""What a metric is held against: fixed bounds, this host's last good release, the fleet's other hosts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from modules.facts.parse.llama_benchy import Metric
from modules.gating.comparison import Comparison
from modules.gating.direction import lower_is_better, unit_of
from modules.gating.significance import (
    Estimate,
    beyond_bound,
    log_share,
    share_of,
    spread_of,
    worse_than,
    worse_than_median,
)
from modules.spec.gate import Threshold, Worse

# With fewer a median says nothing.
FEWEST_OTHERS = 3
# A first measurement is one that later ones are held against: its error should be so much smaller than the bound.
# Then no change, and a change of twice the bound, are both told from the bound itself.
PRECISION = 4.0


@dataclass(frozen=True)
class References:
    """`last_good`: metric → the runs of this host's last good release. `fleet`: metric → other hosts' means.

    Those are hosts that serve the same model by the same engine and profile, and their own last good releases.
    """

    last_good: Mapping[str, Metric] = field(default_factory=dict)
    fleet: Mapping[str, tuple[float, ...]] = field(default_factory=dict)


def unusable(metric: Metric, fewest: int = 2) -> str | None:
    """Why a figure is none, whatever its mean says; None when it is one. `fewest`: runs that its workload makes."""
    if len(metric.values) < fewest:
        return f"not measured (without two runs there is no spread; there were {len(metric.values)})"
    if not all(math.isfinite(value) and value > 0 for value in metric.values):
        return "not measured (a run gave zero, or no number)"
    return None


def comparisons(name: str, threshold: Threshold, metric: Metric, references: References) -> list[Comparison]:
    """Every comparison that a threshold asks for and that can be made."""
    return [
        *_fixed(threshold, metric),
        *_last_good(name, threshold.last_good, metric, references.last_good.get(name)),
        *_fleet(name, threshold.fleet, metric, references.fleet.get(name, ())),
    ]


def is_vague(name: str, threshold: Threshold, metric: Metric, references: References) -> bool:
    """Whether a first measurement is known too badly for later ones to be held against it."""
    if threshold.last_good is None or name in references.last_good:
        return False
    cuts = _cuts(threshold.last_good, lower=lower_is_better(name))
    narrowest = min(cut for cut in cuts if cut is not None)
    return spread_of([math.log(value) for value in metric.values]).error > narrowest / PRECISION


def _fixed(threshold: Threshold, metric: Metric) -> Iterator[Comparison]:
    for fail, warn, upper, word in (
        (threshold.min, threshold.warn_min, False, "below"),
        (threshold.max, threshold.warn_max, True, "above"),
    ):
        if fail is not None:
            estimate = beyond_bound(metric.values, fail, lower_is_better=upper)
            yield Comparison(estimate, None, 0.0, f"{word} {fail:g}")
        if warn is not None:
            estimate = beyond_bound(metric.values, warn, lower_is_better=upper)
            yield Comparison(estimate, 0.0, None, f"{word} {warn:g}")


def _last_good(name: str, worse: Worse | None, metric: Metric, former: Metric | None) -> Iterator[Comparison]:
    if worse is None or former is None or unusable(former) is not None:
        return
    lower = lower_is_better(name)
    estimate = worse_than(metric.values, former.values, lower_is_better=lower)
    reference = f"the last good release's {former.mean:.2f} ± {former.std:.2f} {unit_of(name)}"
    yield _change(estimate, worse, reference, lower=lower)


def _fleet(name: str, worse: Worse | None, metric: Metric, others: tuple[float, ...]) -> Iterator[Comparison]:
    usable = [value for value in others if math.isfinite(value) and value > 0]
    if worse is None or len(usable) < FEWEST_OTHERS:
        return
    lower = lower_is_better(name)
    estimate = worse_than_median(metric.values, usable, lower_is_better=lower)
    yield _change(estimate, worse, f"the median of {len(usable)} other hosts", lower=lower)


def _change(estimate: Estimate, worse: Worse, reference: str, *, lower: bool) -> Comparison:
    warn, fail = _cuts(worse, lower=lower)
    share = 100 * share_of(estimate.worse, lower_is_better=lower)
    return Comparison(estimate, warn, fail, f"{share:.1f} % worse than {reference}")


def _cuts(worse: Worse, *, lower: bool) -> tuple[float | None, float | None]:
    warn, fail = (
        None if share is None else log_share(share, lower_is_better=lower) for share in (worse.warn, worse.fail)
    )
    return warn, fail
