"""Whether a gate must measure, or can judge what was measured before."""

from __future__ import annotations

from modules.facts.gate import GateResult
from modules.gating.identity import thresholds_id, workload_id
from modules.gating.judgement import Verdict
from modules.spec.gate import Gate


def needs_measuring(gate: Gate, result: GateResult | None) -> bool:
    """No result of this workload, or one that failed by these very thresholds: its cause may be gone meanwhile.

    Other thresholds than at the last judgement ask for another judgement only.
    """
    if result is None or result.workload_id != workload_id(gate.workload):
        return True
    judged = result.judgement
    return judged is not None and judged["thresholds"] == thresholds_id(gate) and judged["verdict"] == Verdict.FAIL
