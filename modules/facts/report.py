"""What a host tells for a report: its services, releases, measurements and memory, in one round trip."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyinfra.api import QuoteString, StringCommand
from typing_extensions import override

from modules.facts.base import HostFact
from modules.facts.service import UnitState
from modules.loading import DeviceWays, Rates
from modules.memory import Checkpoint, from_summary
from modules.release import layout
from modules.rollout.record import RolloutRecord

_PROGRAM = str(layout.PROGRAMS / "report_state.py")

Document = dict[str, Any]


@dataclass(frozen=True)
class ServiceSeen:
    """`releases`: of the ledger, the oldest first, each with its `events`. `measurements`: as the gate stored them.

    `rates`, `ways`: how fast its weights are read and loaded; None where nothing that holds was measured.
    """

    unit: UnitState
    current: str | None
    last_good: str | None
    releases: tuple[Document, ...]
    measurements: tuple[Document, ...]
    checkpoint: Checkpoint | None
    rates: Rates | None = None
    ways: DeviceWays | None = None

    @classmethod
    def of(cls, answer: Document) -> ServiceSeen:
        """From what `report_state.py` prints of a service."""
        summary = answer["checkpoint"]
        # A host that has an older version of the program tells nothing of it.
        load = answer.get("load") or {}
        return cls(
            unit=UnitState.of(answer["unit"]),
            current=answer["current"],
            last_good=answer["last_good"],
            releases=tuple(answer["releases"]),
            measurements=tuple(answer["measurements"]),
            checkpoint=None if summary is None else from_summary(summary),
            rates=None if load.get("rates") is None else Rates.model_validate(load["rates"]),
            ways=None if load.get("ways") is None else DeviceWays.model_validate(load["ways"]),
        )


@dataclass(frozen=True)
class HostSeen:
    """`at`: when, UTC. `memory`: MemTotal in bytes, None where it can not be read.

    `rollout`: the last one that the host was a part of, as it was noted there.
    """

    at: str
    gpu: str | None
    driver: str | None
    memory: int | None
    services: Mapping[str, ServiceSeen]
    rollout: RolloutRecord | None = None


class ReportState(HostFact[HostSeen]):
    """All that a report tells of a host; None before this version of Tinderbox's programs is on it.

    + services: name → the `model`'s directory in the hub cache and the one `file` of it that is served, or None
    """

    @override
    def command(self, services: dict[str, dict[str, str | None]]) -> StringCommand:
        wish = QuoteString(json.dumps(services))
        return StringCommand("! test -e", _PROGRAM, "||", layout.PYTHON, _PROGRAM, wish)

    @override
    def parse(self, lines: list[str]) -> HostSeen:
        answer = json.loads(lines[-1])
        gpu = answer["gpu"] or {}
        return HostSeen(
            at=answer["at"],
            gpu=gpu.get("name"),
            driver=gpu.get("driver"),
            memory=answer["memory"],
            services={name: ServiceSeen.of(service) for name, service in answer["services"].items()},
            rollout=None if answer.get("rollout") is None else RolloutRecord.model_validate(answer["rollout"]),
        )
