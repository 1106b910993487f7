"""Whether a gate must measure, or can judge what was measured before."""

from __future__ import annotations

from modules.facts.gate import GateState
from modules.gating.identity import thresholds_id, workload_id
from modules.gating.judgement import Verdict
from modules.hostside.version_changes import changes, told
from modules.spec.answers import Answers
from modules.spec.gate import Gate

_DAY_S = 86_400.0


def why_measure(gate: Gate, answers: Answers | None, found: GateState, *, asked: bool = False) -> str | None:
    """Why the service must be measured, or None where the result that there is will do.

    Other thresholds than at the last judgement ask for another judgement only, and for more runs where it is in doubt.
    """
    result = found.result
    if result is None:
        return "this release was never measured"
    if result.workload_id != workload_id(gate, answers):
        return "the workload is another one than was measured"
    if asked:
        return "asked to"
    upgraded = changes(result.versions, found.versions)
    if upgraded:
        return f"the machine has changed since it was measured: {told(upgraded)}"
    if gate.max_age_days is not None and result.age_s > gate.max_age_days * _DAY_S:
        return f"the result is {result.age_s / _DAY_S:.1f} days old, and may be {gate.max_age_days:g}"
    # The cause may be gone meanwhile.
    judged = result.judgement
    failed = judged is not None and judged["thresholds"] == thresholds_id(gate) and judged["verdict"] == Verdict.FAIL
    return "it failed the last time" if failed else None
