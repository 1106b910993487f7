"""What makes two measurements, or two judgements, the same: by hash, so that nothing is measured twice in vain."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from modules.spec.gate import BenchyWorkload, Gate

# Raised when the way of measuring changes so that older results can not be compared with new ones.
METHOD = 1


def _digest(document: Any) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:12]


def workload_id(workload: BenchyWorkload) -> str:
    """Of what is measured. The time limit is no part of it."""
    return _digest({"method": METHOD, **workload.model_dump(mode="json", exclude={"time_limit_s"})})


def thresholds_id(gate: Gate) -> str:
    """Of what is asked of a measurement."""
    return _digest({name: bounds.model_dump(mode="json") for name, bounds in gate.thresholds.items()})
