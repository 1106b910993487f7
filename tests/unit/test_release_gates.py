"""The gate of a release, as its history tells it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from modules.facts.releases import ServiceHistory
from modules.spec.gate import BenchyWorkload, Threshold
from roles.history import gates_of
from tests.unit.benchy_report import GOOD

DECODE, PREFILL = "tg32@pp512 c1", "pp512 c1"


def stored(verdict: str, **lines: str) -> dict[str, Any]:
    names = {"decode": DECODE, "prefill": PREFILL}
    workload = BenchyWorkload(pp=(512,), tg=(32,), runs=3).model_dump(mode="json")
    return {
        "release": "r1",
        "workloads": {"benchy": workload},
        "parts": {"benchy": [{"report": json.loads(GOOD), "runs": 3, "faults": []}]},
        "judgement": {
            "verdict": verdict,
            "lines": [{"metric": names[name], "verdict": one, "reason": ""} for name, one in lines.items()],
        },
    }


@pytest.mark.parametrize(
    ("lines", "metric"),
    [
        ({"decode": "PASS", "prefill": "FAIL"}, PREFILL),
        ({"prefill": "PASS", "decode": "FAIL"}, DECODE),
        # Not noted: by the gate as it is now.
        ({}, PREFILL),
    ],
)
def test_the_figure_is_of_what_decided_then_and_not_of_todays_gate(lines: dict[str, str], metric: str) -> None:
    service: Any = SimpleNamespace(gate=SimpleNamespace(thresholds={PREFILL: Threshold(min=1)}))
    history = ServiceHistory("active", "r1", None, (), (stored("FAIL", **lines),))
    verdict, figure = gates_of(service, history)["r1"]
    assert verdict == "FAIL"
    assert figure.startswith(f"{metric}: ")
