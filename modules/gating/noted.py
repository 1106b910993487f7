"""A judgement as the host notes it beside the measurement, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from modules.facts.gate import GateState
from modules.gating.explain import Cause
from modules.gating.identity import thresholds_id
from modules.gating.judgement import Judgement, Line, Verdict
from modules.gating.metrics import Measurement
from modules.spec.gate import Gate


def judgement_document(gate: Gate, judgement: Judgement, causes: Sequence[Cause]) -> dict[str, Any]:
    """What is noted. `thresholds`: by what it was judged. `figures`: metric → its mean, for who watches the host."""
    return {
        "verdict": str(judgement.verdict),
        "thresholds": thresholds_id(gate),
        "lines": [
            {"metric": line.metric, "verdict": str(line.verdict), "reason": line.reason} for line in judgement.lines
        ],
        "figures": {line.metric: line.measured.mean for line in judgement.lines if line.measured is not None},
        "causes": [
            {
                "name": one.name,
                "cause": one.cause,
                "meaning": one.meaning,
                "action": one.action,
                "evidence": list(one.evidence),
            }
            for one in causes
        ],
    }


def noted_judgement(gate: Gate, found: GateState, measured: Measurement) -> Judgement | None:
    """The judgement that stands, where it was made by these thresholds and the ledger has what follows from it.

    Nothing is judged twice in vain: what the fleet's other hosts do meanwhile is no reason to fail this one.
    """
    noted = None if found.result is None else found.result.judgement
    if noted is None or noted["thresholds"] != thresholds_id(gate) or "lines" not in noted:
        return None
    verdict = Verdict(noted["verdict"])
    if verdict is Verdict.FAIL or found.last_good != found.current:
        return None
    lines = [
        Line(one["metric"], Verdict(one["verdict"]), measured.metrics.get(one["metric"]), one["reason"])
        for one in noted["lines"]
    ]
    return Judgement(verdict, tuple(lines))
