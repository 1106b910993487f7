"""What a gate measures next: all of it, more of what is in doubt, or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from modules.facts.gate import GateResult
from modules.gating.decision import Decision
from modules.gating.estimate import estimate_s, told
from modules.gating.metrics import Measurement
from modules.spec.gate import Gate


@dataclass(frozen=True)
class Step:
    """`measure`: workload → runs, in their order. `append`: they are added to those that there are. `why`: in words."""

    measure: Mapping[str, int]
    append: bool
    why: str

    def text(self, gate: Gate, seconds: float) -> str:
        """As told to people before it begins. `seconds`: what it will probably take."""
        if self.append:
            runs = ", ".join(f"{count} more of {kind}" for kind, count in self.measure.items())
            return f"the verdict is in doubt ({self.why}): {runs}"
        most = told(gate.budget_s).removeprefix("about ")
        return f"measuring, since {self.why}: {told(seconds)}, at most {most}"


def whole(gate: Gate, why: str) -> Step:
    """Every workload, with the runs that it makes at first."""
    return Step({kind: gate.runs().get(kind, 1) for kind in gate.kinds()}, append=False, why=why)


def following(gate: Gate, result: GateResult, measured: Measurement, decision: Decision, *, rounds: int) -> Step | None:
    """What comes after a judgement; None when that stands. `rounds`: how often it was measured in this run."""
    if decision.more and _affordable(gate, result, decision):
        return Step(decision.more, append=True, why="; ".join(decision.doubts))
    missing = [name for name in gate.thresholds if name in measured.missing]
    if rounds == 1 and missing and not measured.faults:
        # A disturbed second can make a figure impossible (a prompt that took less than the latency); twice is a fact.
        return whole(gate, f"{missing[0]} was {measured.missing[missing[0]]}")
    return None


def seconds_of(gate: Gate, step: Step, result: GateResult | None, questions: int) -> float:
    """What a step will probably take."""
    known = result.seconds if result is not None and result.parts else 0.0
    return estimate_s(gate, questions, known if not step.append else 0.0)


def _affordable(gate: Gate, result: GateResult, decision: Decision) -> bool:
    """Whether as many more runs fit into the time budget."""
    done = {kind: sum(int(one.get("runs") or 0) for one in parts) for kind, parts in result.parts.items()}
    share = max((more / max(1, done.get(kind, 0)) for kind, more in decision.more.items()), default=0.0)
    return result.seconds * (1 + share) <= gate.budget_s
