"""What a host knows of a service's gate."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pyinfra.api import QuoteString, StringCommand

from modules.facts.base import HostFact
from modules.facts.service import UnitState
from modules.release import layout

PROGRAM = str(layout.PROGRAMS / "gate_state.py")

Range = dict[str, float]
"""`min`, `median`, `max`."""


@dataclass(frozen=True)
class GateResult:
    """A measurement. `report`: llama-benchy's JSON. `samples`: of the GPU meanwhile. `judgement`: as last noted."""

    workload_id: str
    finished: str
    gpu: str | None
    samples: dict[str, Range]
    report: str
    judgement: dict[str, str] | None

    @classmethod
    def of(cls, stored: dict[str, Any]) -> GateResult:
        """From the stored document."""
        return cls(
            workload_id=stored["workload_id"],
            finished=stored["finished"],
            gpu=stored["gpu"]["name"] if stored["gpu"] else None,
            samples=stored["samples"],
            report=json.dumps(stored["report"]),
            judgement=stored.get("judgement"),
        )


@dataclass(frozen=True)
class GateState:
    """`current`: the release in force, with its model's `commit`; `result`: of exactly that release."""

    current: str | None
    last_good: str | None
    commit: str | None
    unit: UnitState
    result: GateResult | None


class ServiceGate(HostFact[GateState]):
    """The release in force and what was measured of it, in one round trip; None before Tinderbox is on the host."""

    def command(self, service: str) -> StringCommand:  # noqa: D102
        return StringCommand("! test -e", PROGRAM, "||", layout.PYTHON, PROGRAM, QuoteString(service))

    def parse(self, lines: list[str]) -> GateState:  # noqa: D102
        answer = json.loads(lines[-1])
        return GateState(
            current=answer["current"],
            last_good=answer["last_good"],
            commit=answer["commit"],
            unit=UnitState.of(answer["unit"]),
            result=GateResult.of(answer["result"]) if answer["result"] else None,
        )
