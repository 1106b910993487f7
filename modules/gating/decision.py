"""Repeated runs, thresholds and references → verdict, and how many more runs would settle what is in doubt."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from modules.facts.parse.llama_benchy import Metric
from modules.gating.comparison import Comparison, Risks
from modules.gating.judgement import Judgement, Line, Verdict
from modules.gating.metrics import Measurement, SeenFault
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
    """`judgement`: as things stand. `doubts`: what these runs do not settle. `more`: workload → runs to add.

    No more are asked for when nothing is in doubt, when it fails anyway, or when the gate's bound of runs is reached.
    """

    judgement: Judgement
    doubts: tuple[str, ...]
    more: Mapping[str, int] = field(default_factory=dict)

    @property
    def more_runs(self) -> int:
        """The most that any workload asks for."""
        return max(self.more.values(), default=0)

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

    What was not measured fails, as does every fault, and no further runs are asked for then.
    """
    ground, runs, measured_by = _Ground(measurement, references, risks_of(gate)), gate.runs(), gate.metrics()
    judged = [
        _judged(name, bounds, ground, min(2, runs.get(measured_by[name], 1)))
        for name, bounds in gate.thresholds.items()
    ]
    lines = (*_fault_lines(measurement.faults), *(one.line for one in judged))
    verdicts = {line.verdict for line in lines}
    judgement = Judgement(next(verdict for verdict in _WORST_FIRST if verdict in verdicts), lines)
    in_doubt = [one for one in judged if one.doubt is not None]
    doubts = tuple(f"{one.line.metric}: {one.doubt}" for one in in_doubt)
    lost = bool(measurement.faults) or any(one.line.verdict is Verdict.FAIL and one.doubt is None for one in judged)
    kinds = dict.fromkeys(measured_by[one.line.metric] for one in in_doubt)
    more = {kind: _more_runs(gate, kind, measurement) for kind in kinds if kind in runs and not lost}
    return Decision(judgement, doubts, {kind: count for kind, count in more.items() if count > 0})


def _fault_lines(faults: Iterable[SeenFault]) -> tuple[Line, ...]:
    """One for each workload, since lines are told apart by their names."""
    told: dict[str, list[str]] = {}
    for one in faults:
        told.setdefault(one.workload, []).append(f"{one.kind}: {one.told}")
    return tuple(Line(workload, Verdict.FAIL, None, "; ".join(words)) for workload, words in told.items())


def risks_of(gate: Gate) -> Risks:
    """A gate's risks, shared out over its bounds and over the times that it comes to judge."""
    failing = sum(_failing_bounds(threshold) for threshold in gate.thresholds.values())
    looks = 1 + max(math.ceil(math.log2(gate.bound_of(runs) / runs)) for runs in gate.runs().values())
    return Risks(FALSE_ALARM / max(1, failing) / looks, MISS / looks)


def _failing_bounds(threshold: Threshold) -> int:
    relative = (worse.fail for worse in (threshold.last_good, threshold.fleet) if worse is not None)
    return sum(bound is not None for bound in (threshold.min, threshold.max, *relative))


def _more_runs(gate: Gate, kind: str, measurement: Measurement) -> int:
    """As many again as there are, within the bound: the error shrinks by its root, so smaller steps gain little."""
    names = [name for name, workload in gate.metrics().items() if workload == kind and name in measurement.metrics]
    done = min(len(measurement.metrics[name].values) for name in names)
    return max(0, min(2 * done, gate.bound_of(gate.runs()[kind])) - done)


@dataclass(frozen=True)
class _Ground:
    """What every metric is judged on."""

    measurement: Measurement
    references: References
    risks: Risks


def _judged(name: str, threshold: Threshold, on: _Ground, fewest: int) -> _Judged:
    measurement, references, risks = on.measurement, on.references, on.risks
    metric = measurement.metrics.get(name)
    trouble = measurement.missing.get(name, "not measured") if metric is None else unusable(metric, fewest)
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
