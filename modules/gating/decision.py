"""Repeated runs, thresholds and references → verdict, and how many more runs would settle what is in doubt."""

from __future__ import annotations

import math
from dataclasses import dataclass

from modules.facts.parse.llama_benchy import Metric
from modules.gating.comparison import Comparison, Risks
from modules.gating.judgement import Judgement, Line, Verdict
from modules.gating.metrics import Measurement
from modules.gating.references import References, comparisons, is_vague, unusable
from modules.spec.gate import Gate, Threshold

# Of a whole gate: so often may it fail an unchanged server.
FALSE_ALARM = 0.02
# Of each bound: so often may a server pass that is worse.
MISS = 0.05
NOTHING = References()
_WORST_FIRST = (Verdict.FAIL, Verdict.WARN, Verdict.PASS)


@dataclass(frozen=True)
class Decision:
    """`judgement`: as things stand. `doubts`: what these runs do not settle. `more_runs`: how many to add to them.

    No more are asked for when nothing is in doubt, when it fails anyway, or when the gate's bound of runs is reached.
    """

    judgement: Judgement
    doubts: tuple[str, ...]
    more_runs: int

    @property
    def settled(self) -> bool:
        """Whether the judgement is final."""
        return self.more_runs == 0


@dataclass(frozen=True)
class _Judged:
    line: Line
    doubt: str | None = None


def decide(gate: Gate, measurement: Measurement, references: References = NOTHING) -> Decision:
    """Judge all runs of a release that there are so far. The worst line decides.

    What was not measured fails, and no further runs are asked for then.
    """
    risks = risks_of(gate)
    judged = [_judged(name, bounds, measurement, references, risks) for name, bounds in gate.thresholds.items()]
    verdicts = {one.line.verdict for one in judged}
    judgement = Judgement(
        next(verdict for verdict in _WORST_FIRST if verdict in verdicts), tuple(one.line for one in judged)
    )
    doubts = tuple(f"{one.line.metric}: {one.doubt}" for one in judged if one.doubt is not None)
    lost = any(one.line.verdict is Verdict.FAIL and one.doubt is None for one in judged)
    return Decision(judgement, doubts, _more_runs(gate, measurement) if doubts and not lost else 0)


def risks_of(gate: Gate) -> Risks:
    """A gate's risks, shared out over its bounds and over the times that it comes to judge."""
    failing = sum(_failing_bounds(threshold) for threshold in gate.thresholds.values())
    looks = 1 + math.ceil(math.log2(gate.run_bound / gate.workload.runs))
    return Risks(FALSE_ALARM / max(1, failing) / looks, MISS / looks)


def _failing_bounds(threshold: Threshold) -> int:
    relative = (worse.fail for worse in (threshold.last_good, threshold.fleet) if worse is not None)
    return sum(bound is not None for bound in (threshold.min, threshold.max, *relative))


def _more_runs(gate: Gate, measurement: Measurement) -> int:
    """As many again as there are, within the bound: the error shrinks by its root, so smaller steps gain little."""
    done = min(len(metric.values) for metric in measurement.metrics.values())
    return max(0, min(2 * done, gate.run_bound) - done)


def _judged(name: str, threshold: Threshold, measurement: Measurement, references: References, risks: Risks) -> _Judged:
    metric = measurement.metrics.get(name)
    trouble = measurement.missing.get(name, "not measured") if metric is None else unusable(metric)
    if metric is None or trouble is not None:
        return _Judged(Line(name, Verdict.FAIL, metric, trouble or "not measured"))
    made = comparisons(name, threshold, metric, references)
    doubt = "its bounds lie within the spread of the runs" if any(one.wants_more(risks) for one in made) else None
    if doubt is None and is_vague(name, threshold, metric, references):
        doubt = "too vague to hold later releases against"
    return _Judged(_line(name, metric, made, risks), doubt)


def _line(name: str, metric: Metric, made: list[Comparison], risks: Risks) -> Line:
    for verdict in _WORST_FIRST[:-1]:
        crossed = [one for one in made if one.verdict(risks) is verdict]
        if crossed:
            return Line(name, verdict, metric, "; ".join(_told(one, verdict, risks) for one in crossed))
    return Line(name, Verdict.PASS, metric)


def _told(one: Comparison, verdict: Verdict, risks: Risks) -> str:
    by_failure = verdict is Verdict.WARN and one.fail is not None and one.estimate.worse > one.fail
    return f"{one.told} (a failure, if it is not chance)" if by_failure and one.may_be_chance(risks) else one.told
