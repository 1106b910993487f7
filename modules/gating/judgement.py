"""Measurement and thresholds → verdict, with a line for each metric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from modules.facts.parse.llama_benchy import Metric
from modules.gating.metrics import Measurement
from modules.spec.gate import Threshold


class Verdict(StrEnum):
    """`WARN`: good enough to serve, and worse than expected."""

    PASS = "PASS"  # noqa: S105, no password
    WARN = "WARN"
    FAIL = "FAIL"


@dataclass(frozen=True)
class Line:
    """One metric. `reason`: which bound was crossed, or why there is no figure; empty for a pass."""

    metric: str
    verdict: Verdict
    measured: Metric | None
    reason: str = ""

    def text(self) -> str:
        """As shown to people."""
        figure = "-" if self.measured is None else f"{self.measured.mean:.2f} ± {self.measured.std:.2f}"
        return f"{self.verdict:<4}  {self.metric:<24} {figure:>20}  {self.reason}".rstrip()


@dataclass(frozen=True)
class Judgement:
    """The verdict of a gate, and the lines that it rests on."""

    verdict: Verdict
    lines: tuple[Line, ...]

    def text(self) -> str:
        """As shown to people: a line each."""
        return "\n".join(line.text() for line in self.lines)


def judge_metric(name: str, bounds: Threshold, measurement: Measurement) -> Line:
    """Compare a metric's mean with its bounds."""
    measured = measurement.metrics.get(name)
    if measured is None:
        return Line(name, Verdict.FAIL, None, measurement.missing.get(name, "not measured"))
    for verdict, least, most in (
        (Verdict.FAIL, bounds.min, bounds.max),
        (Verdict.WARN, bounds.warn_min, bounds.warn_max),
    ):
        if least is not None and measured.mean < least:
            return Line(name, verdict, measured, f"below {least:g}")
        if most is not None and measured.mean > most:
            return Line(name, verdict, measured, f"above {most:g}")
    return Line(name, Verdict.PASS, measured)


def judge(thresholds: Mapping[str, Threshold], measurement: Measurement) -> Judgement:
    """The worst line decides."""
    lines = tuple(judge_metric(name, bounds, measurement) for name, bounds in thresholds.items())
    verdicts = {line.verdict for line in lines}
    worst = next((verdict for verdict in (Verdict.FAIL, Verdict.WARN) if verdict in verdicts), Verdict.PASS)
    return Judgement(worst, lines)
