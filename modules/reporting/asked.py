"""What a gate asks of a figure, in words, and figures that it lets pass though they are far from their references."""

from __future__ import annotations

from collections.abc import Iterator

from modules.gating.judgement import Verdict
from modules.reporting.report import Bounds, MetricReport, RelativeBound

# A figure that is worse by so much than its reference, and passes, needs a word of why.
REMARKABLE = 0.05
NOTHING_ASKED = "no threshold"
_FLEET = "the fleet's median"


def bounds_in_words(bounds: Bounds, *, lower_is_better: bool) -> str:
    """`at least 50, warns below 56, at most 5 % slower than last good`; `no threshold` where there is none."""
    fixed = [
        f"{words} {value:,g}"
        for value, words in (
            (bounds.min, "at least"),
            (bounds.max, "at most"),
            (bounds.warn_min, "warns below"),
            (bounds.warn_max, "warns above"),
        )
        if value is not None
    ]
    worse = "longer" if lower_is_better else "slower"
    relative = [*_relative(bounds.last_good, worse, "last good"), *_relative(bounds.fleet, worse, _FLEET)]
    return ", ".join([*fixed, *relative]) or NOTHING_ASKED


def asked(metric: MetricReport) -> str:
    """The gate's bounds on this figure."""
    return bounds_in_words(metric.bounds, lower_is_better=metric.lower_is_better)


def let_pass(metric: MetricReport) -> str:
    """Why a figure passes that is worse than what stands beside it; nothing where there is nothing to explain."""
    if metric.now is None or metric.verdict in {Verdict.WARN, Verdict.FAIL}:
        return ""
    former = None if metric.last_good is None else metric.last_good.mean
    held = metric.bounds.last_good is not None
    beside = [*([] if held else [("the last good release", former)]), ("the published baseline", metric.published)]
    far = [name for name, value in beside if value is not None and _worse(metric, value) > REMARKABLE]
    if metric.verdict is None:
        return "so it passes whatever it is" if far or (former and _worse(metric, former) > REMARKABLE) else ""
    return f"which is all that is asked: it is not held to {' or '.join(far)}" if far else ""


def _relative(bound: RelativeBound | None, worse: str, reference: str) -> Iterator[str]:
    if bound is None:
        return
    if bound.fail is not None:
        yield f"at most {100 * bound.fail:g} % {worse} than {reference}"
    if bound.warn is not None:
        yield f"warns when {100 * bound.warn:g} % {worse} than {reference}"


def _worse(metric: MetricReport, reference: float) -> float:
    """By which share it is worse; negative where it is better."""
    if metric.now is None or reference <= 0:
        return 0.0
    change = metric.now.mean / reference - 1
    return change if metric.lower_is_better else -change
