"""What a gate measures next: all of it, more of what is in doubt, or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from modules.facts.gate import GateResult, GateState
from modules.gating.decision import Decision
from modules.gating.identity import workload_id
from modules.gating.metrics import Measurement
from modules.spec.answers import Answers
from modules.spec.gate import Gate


@dataclass(frozen=True)
class Step:
    """`measure`: workload → runs, in their order. `append`: they are added to those that there are. `why`: in words."""

    measure: Mapping[str, int]
    append: bool
    why: str

    def text(self, gate: Gate, seconds: float | None) -> str:
        """As told to people before it begins. `seconds`: what the same took the last time; None: nobody knows."""
        if self.append:
            runs = ", ".join(f"{count} more of {kind}" for kind, count in self.measure.items())
            return f"the verdict is in doubt ({self.why}): {runs}"
        likely = "" if seconds is None else f"about {told(seconds)}, as the last time, and "
        return f"measuring, since {self.why}: {likely}at most {told(gate.budget_s)}"


def told(seconds: float) -> str:
    """As people read it."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


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


def seconds_of(gate: Gate, answers: Answers | None, found: GateState) -> float | None:
    """What the whole of it took the last time, of this release or of the one before; None where it never ran here."""
    ran = workload_id(gate, answers)
    known = [one for one in (found.result, found.reference) if one is not None and one.workload_id == ran and one.parts]
    return next((one.seconds for one in known if one.seconds > 0), None)


def _affordable(gate: Gate, result: GateResult, decision: Decision) -> bool:
    """Whether as many more runs fit into the time budget."""
    done = {kind: sum(int(one.get("runs") or 0) for one in parts) for kind, parts in result.parts.items()}
    share = max((more / max(1, done.get(kind, 0)) for kind, more in decision.more.items()), default=0.0)
    return result.seconds * (1 + share) <= gate.budget_s
