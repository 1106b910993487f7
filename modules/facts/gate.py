"""What a host knows of a service's gate."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from pyinfra.api import QuoteString, StringCommand

from modules.facts.base import HostFact
from modules.facts.program import AskProgram
from modules.facts.service import UnitState
from modules.hostside.version_changes import DRIVER, Versions
from modules.release import layout

PROGRAM = str(layout.PROGRAMS / "gate_state.py")

Range = dict[str, float]
"""`min`, `median`, `max`."""
Parts = dict[str, list[dict[str, Any]]]
"""Workload → its repetitions, as `run_gate.py` keeps them."""


@dataclass(frozen=True)
class GateResult:
    """A measurement. `parts`: what came out; `faults`: what no speed makes good; `samples`: meanwhile.

    `seconds`: what measuring took. `judgement`: as last noted. `client`: where it ran, `host` or `controller`.
    `versions`: of the machine's parts as it was measured; of an older result only the driver's.
    """

    workload_id: str
    release: str
    finished: str
    age_s: float
    gpu: str | None
    samples: dict[str, Range]
    parts: Parts
    faults: tuple[dict[str, str], ...]
    seconds: float
    judgement: dict[str, Any] | None
    client: str = "host"
    versions: Versions = field(default_factory=dict)

    @classmethod
    def of(cls, stored: dict[str, Any]) -> GateResult:
        """From the stored document; one of an earlier format is nobody's workload, so it is measured again."""
        gpu = stored.get("gpu") or {}
        known = stored.get("format") == 2
        return cls(
            workload_id=stored["workload_id"] if known else "",
            release=stored["release"],
            finished=stored["finished"],
            age_s=float(stored.get("age_s") or 0.0),
            gpu=gpu.get("name"),
            samples=stored["samples"],
            parts=stored["parts"] if known else {},
            faults=tuple(stored.get("faults") or ()),
            seconds=float(stored.get("seconds") or 0.0),
            judgement=stored.get("judgement"),
            client=stored.get("client") or "host",
            versions=stored.get("versions") or {DRIVER: gpu.get("driver")},
        )


@dataclass(frozen=True)
class GateState:
    """`current`: the release in force, with its model's `commit`; `result`: of exactly that release.

    `reference`: the last good measurement before it. `datasets`: hashes of those on the host. `versions`: of the
    machine's parts now; `proved_on`: what they were when the release was last found good. `has_gateway`: one of the
    fleet sends it requests; `closed`: not now.
    """

    current: str | None
    last_good: str | None
    commit: str | None
    unit: UnitState
    result: GateResult | None
    reference: GateResult | None = None
    datasets: frozenset[str] = frozenset()
    versions: Versions = field(default_factory=dict)
    proved_on: Versions | None = None
    has_gateway: bool = False
    closed: bool = False

    @property
    def driver(self) -> str | None:
        """Of the GPU, now."""
        return self.versions.get(DRIVER)


class ServiceGate(HostFact[GateState]):
    """The release in force and what was measured of it, in one round trip; None before Tinderbox is on the host."""

    def command(self, service: str) -> StringCommand:  # noqa: D102
        return AskProgram(layout.PYTHON, PROGRAM, (service,))

    def parse(self, lines: list[str]) -> GateState:  # noqa: D102
        answer = json.loads(lines[-1])
        return GateState(
            current=answer["current"],
            last_good=answer["last_good"],
            commit=answer["commit"],
            unit=UnitState.of(answer["unit"]),
            result=GateResult.of(answer["result"]) if answer["result"] else None,
            reference=GateResult.of(answer["reference"]) if answer.get("reference") else None,
            datasets=frozenset(answer.get("datasets") or ()),
            versions=answer.get("versions") or {},
            proved_on=answer.get("proved_on"),
            has_gateway=bool(answer.get("has_gateway")),
            closed=bool(answer.get("closed")),
        )


@dataclass(frozen=True)
class Evidence:
    """`samples`: series by name, one value a second; `log`: the engine's, of the start that was measured."""

    samples: dict[str, list[float | None]] = field(default_factory=dict)
    log: tuple[str, ...] = ()


class GateEvidence(HostFact[Evidence]):
    """By what a result is explained. Asked for only after something was measured: it is long."""

    def command(self, service: str) -> StringCommand:  # noqa: D102
        return StringCommand(layout.PYTHON, PROGRAM, "--evidence", QuoteString(service))

    def parse(self, lines: list[str]) -> Evidence:  # noqa: D102
        answer = json.loads(lines[-1])
        return Evidence(answer["samples"], tuple(answer["log"]))
