"""The report of a fleet: what the page shows, as data. Its schema is docs/report.schema.json.

`python -m modules.reporting.report` writes the schema.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from modules.gating.judgement import Verdict
from modules.rollout.record import RolloutRecord

SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "report.schema.json"
SCHEMA_VERSION = 1

# Unknown: nobody has asked the host, or it did not answer. That is neither failed nor fine.
State = Literal["running", "failed", "stopped", "unknown"]
Series = tuple[float | None, ...]


class Part(BaseModel):
    """Of a report."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Reading(Part):
    """Mean and standard deviation over `runs` runs, in the metric's unit."""

    mean: float
    std: float = Field(ge=0)
    runs: int = Field(ge=0)


class Published(Part):
    """What others measured. `name`: of the baseline in the catalog."""

    value: float
    std: float | None = None
    name: str
    source: str


class RelativeBound(Part):
    """By which share the figure may be worse than its reference before it fails, and before it warns."""

    fail: float | None = None
    warn: float | None = None


class Bounds(Part):
    """Of the gate, in the metric's unit. `last_good`, `fleet`: against that release, and the other hosts' median."""

    min: float | None = None
    max: float | None = None
    warn_min: float | None = None
    warn_max: float | None = None
    last_good: RelativeBound | None = None
    fleet: RelativeBound | None = None

    @property
    def fixed(self) -> bool:
        """Whether there is any that is known without a reference."""
        return any(bound is not None for bound in (self.min, self.max, self.warn_min, self.warn_max))


class MetricReport(Part):
    """One metric now, and what it can be compared with.

    `now`: null where it was not measured, which never passes. `last_good`: of the last good release before this one.
    """

    name: str
    title: str
    detail: str
    unit: str
    lower_is_better: bool
    verdict: Verdict | None
    reason: str = ""
    now: Reading | None
    bounds: Bounds = Bounds()
    baseline: Published | None = None
    last_good: Reading | None = None

    @property
    def published(self) -> float | None:
        """The baseline's value."""
        return None if self.baseline is None else self.baseline.value


class HistoryPoint(Part):
    """One measurement. `readings`: metric → figures. `client`: where it was measured from, host or controller."""

    release: str
    measured: str
    verdict: Verdict
    readings: dict[str, Reading]
    client: str = "host"


class LineReport(Part):
    """A metric's own verdict. `reason`: which bound was crossed, or why there is no figure."""

    verdict: Verdict
    reason: str = ""


class CauseReport(Part):
    """A likely cause of a failure, with what was seen of it."""

    cause: str
    meaning: str
    action: str
    evidence: tuple[str, ...] = ()


class MemoryPart(Part):
    """A claim on the host's memory. `source`: how its size is known."""

    name: str
    bytes: int = Field(ge=0)
    source: str = ""


class MemoryReport(Part):
    """The memory plan: bytes of each part, and of the machine."""

    parts: tuple[MemoryPart, ...]
    machine_bytes: int = Field(gt=0)


class LoadReport(Part):
    """How long the weights take to load from the disk at least, by what was measured on the host.

    `way`: how the engine reads them, read or mapped. `cold`, `warm`: bytes per second of that, from the disk and from
    memory; `direct`: of the disk itself, null where it could not be told. `limit_s`: the catalog's. `slow`: what is
    wrong, where that is crossed. `advice`: a faster way of loading, where one was measured.
    """

    bytes: int = Field(ge=0)
    disk: str
    way: str
    cold: float
    warm: float
    direct: float | None = None
    seconds: float
    limit_s: float | None = None
    slow: str = ""
    advice: str = ""


class GateReport(Part):
    """The gate's last result. `measured`: when, UTC. `telemetry`: series of one sample a second, by name.

    `workload`: the command line without addresses, or a description. `faults`: workload → what no speed makes good.
    """

    verdict: Verdict
    measured: str
    metrics: tuple[MetricReport, ...]
    workload: str = ""
    causes: tuple[CauseReport, ...] = ()
    telemetry: dict[str, Series] = {}
    faults: dict[str, str] = {}


class EventReport(Part):
    """What happened to a release. `at`: when, UTC."""

    at: str
    event: str
    note: str = ""


class ReleaseReport(Part):
    """A release in the host's ledger. `events`: the oldest first."""

    id: str
    events: tuple[EventReport, ...]


class FailureReport(Part):
    """A measurement that failed, after which another release came back. `reasons`: a line for each figure."""

    release: str
    measured: str
    reasons: tuple[str, ...] = ()
    causes: tuple[CauseReport, ...] = ()
    telemetry: dict[str, Series] = {}


class ServiceReport(Part):
    """One service of a host. `gate`: null where the release in force was not measured. `history`: the oldest first.

    `unit`: systemd's words for its unit. `failure`: the newest measurement, where it failed and `gate` is another one.
    """

    name: str
    engine: str
    profile: str
    model: str
    state: State
    gated: bool
    release: str | None = None
    last_good: str | None = None
    gate: GateReport | None = None
    history: tuple[HistoryPoint, ...] = ()
    memory: MemoryReport | None = None
    load: LoadReport | None = None
    unit: str = ""
    releases: tuple[ReleaseReport, ...] = ()
    failure: FailureReport | None = None


class HostReport(Part):
    """One host. `simulated`: a lab host; its figures say nothing about a DGX Spark.

    `seen`: when it last answered, UTC. `trouble`: why it did not when it was last asked; its states are unknown then.
    """

    name: str
    state: State
    simulated: bool
    gpu: str | None = None
    driver: str | None = None
    seen: str | None = None
    trouble: str | None = None
    services: tuple[ServiceReport, ...] = ()


class FleetReport(Part):
    """All that is known of a fleet. `generated`: when, UTC. `rollout`: the last one that any of its hosts knows of."""

    schema_version: Annotated[Literal[1], Field(description="raised when a reader would have to change")] = 1
    fleet: str
    generated: str
    hosts: tuple[HostReport, ...]
    rollout: RolloutRecord | None = None

    @property
    def simulated(self) -> bool:
        """Whether any host is."""
        return any(host.simulated for host in self.hosts)


def schema_text() -> str:
    """The schema as the text of its file."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **FleetReport.model_json_schema()}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(schema_text(), encoding="utf-8")
