"""What makes two measurements, or two judgements, the same: by hash, so that nothing is measured twice in vain."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from modules.spec.answers import Answers
from modules.spec.gate import ANSWERS, BENCHY, COLD_START, HOST, ORDER, RANDOM, SHAREGPT, Gate

# Raised when the way of measuring changes so that older results can not be compared with new ones.
METHOD = 2


def _digest(document: Any) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:12]


def workloads(gate: Gate, answers: Answers | None = None) -> dict[str, Any]:
    """Workload → its settings, as the host is told them, in the order in which they run. `answers`: the gate's."""
    models = {BENCHY: gate.workload, RANDOM: gate.random, SHAREGPT: gate.sharegpt, ANSWERS: answers}
    found = {kind: model.model_dump(mode="json") for kind, model in models.items() if model is not None}
    found |= {COLD_START: {}} if gate.cold_start else {}
    return {kind: found[kind] for kind in ORDER if kind in found}


def workload_id(gate: Gate, answers: Answers | None = None) -> str:
    """Of what is measured, and from where. Time limits, and where a file lies, are no part of it."""
    kept = {kind: _without_limits(settings) for kind, settings in workloads(gate, answers).items()}
    # Nothing more for the host itself, so that what was measured before there was a choice stands.
    elsewhere = {} if gate.client == HOST else {"client": gate.client}
    return _digest({"method": METHOD, **elsewhere, **kept})


def _without_limits(settings: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in settings.items() if key not in {"time_limit_s", "source", "verified"}}
    return kept | ({"dataset": settings["dataset"]["sha256"]} if "dataset" in settings else {})


def thresholds_id(gate: Gate) -> str:
    """Of what is asked of a measurement."""
    return _digest({name: bounds.model_dump(mode="json") for name, bounds in gate.thresholds.items()})
