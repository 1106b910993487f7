"""What the controller keeps of each service besides its last figures: history, telemetry, causes, memory plan.

One file each: `.tinderbox/<fleet>/services/<host>/<service>.json`, of each host `.tinderbox/<fleet>/hosts/<host>.json`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from modules.gating.explain import Cause
from modules.gating.judgement import Judgement
from modules.reporting.measured import ROOT, MeasuredService
from modules.reporting.report import (
    CauseReport,
    FailureReport,
    HistoryPoint,
    LineReport,
    LoadReport,
    MemoryReport,
    Reading,
    ReleaseReport,
    Series,
    State,
)
from modules.rollout.record import RolloutRecord

# Of one service: some years of weekly releases.
LONGEST_HISTORY = 200


class ServiceRecord(BaseModel):
    """`driver`: of the GPU when it was measured. `workload`: its command line, without addresses and paths.

    `lines`: metric → verdict; `judged`: when that was measured to which they belong. `current`: the release in force.
    """

    model_config = ConfigDict(frozen=True)

    state: State = "unknown"
    unit: str = ""
    driver: str | None = None
    current: str | None = None
    last_good: str | None = None
    workload: str = ""
    judged: str | None = None
    lines: dict[str, LineReport] = {}
    telemetry: dict[str, Series] = {}
    causes: tuple[CauseReport, ...] = ()
    memory: MemoryReport | None = None
    load: LoadReport | None = None
    history: tuple[HistoryPoint, ...] = ()
    releases: tuple[ReleaseReport, ...] = ()
    failure: FailureReport | None = None


class HostRecord(BaseModel):
    """A host when it was last asked. `seen`: when it last answered, UTC; `trouble`: why it did not since then.

    `rollout`: the last one that it was a part of.
    """

    model_config = ConfigDict(frozen=True)

    seen: str | None = None
    trouble: str | None = None
    gpu: str | None = None
    driver: str | None = None
    rollout: RolloutRecord | None = None


def record_file(fleet: str, host: str, service: str, root: Path = ROOT) -> Path:
    """Where a service's record lies."""
    return root / fleet / "services" / host / f"{service}.json"


def load_record(fleet: str, host: str, service: str, root: Path = ROOT) -> ServiceRecord:
    """What is kept; an empty record where there is none, or one that can not be read."""
    try:
        return ServiceRecord.model_validate_json(record_file(fleet, host, service, root).read_text(encoding="utf-8"))
    except (OSError, ValidationError):
        return ServiceRecord()


def keep(fleet: str, host: str, service: str, record: ServiceRecord, root: Path = ROOT) -> None:
    """Write a record in one step. Raises `OSError`: the disk is full, or the folder may not be written."""
    _write(record_file(fleet, host, service, root), record)


def forget_record(fleet: str, host: str, service: str, root: Path = ROOT) -> None:
    """Keep no record of a service that was taken off its host. Raises `OSError`: see `keep`."""
    record_file(fleet, host, service, root).unlink(missing_ok=True)


def host_file(fleet: str, host: str, root: Path = ROOT) -> Path:
    """Where a host's record lies."""
    return root / fleet / "hosts" / f"{host}.json"


def load_host(fleet: str, host: str, root: Path = ROOT) -> HostRecord:
    """What is kept; an empty record where there is none, or one that can not be read."""
    try:
        return HostRecord.model_validate_json(host_file(fleet, host, root).read_text(encoding="utf-8"))
    except (OSError, ValidationError):
        return HostRecord()


def keep_host(fleet: str, host: str, record: HostRecord, root: Path = ROOT) -> None:
    """Write a host's record in one step. Raises `OSError`: see `keep`."""
    _write(host_file(fleet, host, root), record)


def _write(path: Path, record: BaseModel) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(record.model_dump_json(indent=1) + "\n", encoding="utf-8")
    beside.replace(path)


def history_point(measured: MeasuredService) -> HistoryPoint:
    """A measurement as history keeps it."""
    readings = {
        name: Reading(mean=figure.mean, std=figure.std, runs=len(figure.values))
        for name, figure in measured.metrics.items()
    }
    return HistoryPoint(
        release=measured.release,
        measured=measured.measured,
        verdict=measured.verdict,
        readings=readings,
        client=measured.client,
    )


def with_point(history: Sequence[HistoryPoint], point: HistoryPoint) -> tuple[HistoryPoint, ...]:
    """History with one point more; a measurement that is judged anew takes the place of its former judgement."""
    kept = [one for one in history if (one.release, one.measured) != (point.release, point.measured)]
    return tuple(sorted([*kept, point], key=lambda one: one.measured)[-LONGEST_HISTORY:])


def line_reports(judgement: Judgement) -> dict[str, LineReport]:
    """A judgement's lines by metric."""
    return {line.metric: LineReport(verdict=line.verdict, reason=line.reason) for line in judgement.lines}


def cause_reports(causes: Sequence[Cause]) -> tuple[CauseReport, ...]:
    """Likely causes as reports tell them."""
    return tuple(
        CauseReport(cause=one.cause, meaning=one.meaning, action=one.action, evidence=one.evidence) for one in causes
    )


def note_gate(
    fleet: str,
    measured: MeasuredService,
    judgement: Judgement,
    *,
    last_good: str | None,
    driver: str | None = None,
    workload: str = "",
    telemetry: Mapping[str, Sequence[float | None]] | None = None,
    causes: Sequence[Cause] = (),
    root: Path = ROOT,
) -> None:
    """Keep what a gate found. Raises `OSError`: see `keep`."""
    former = load_record(fleet, measured.host, measured.service, root)
    record = former.model_copy(
        update={
            "state": "running",
            "driver": driver,
            "current": measured.release,
            "last_good": last_good,
            "workload": workload,
            "judged": measured.measured,
            "lines": line_reports(judgement),
            "telemetry": {name: tuple(values) for name, values in (telemetry or {}).items()},
            "causes": cause_reports(causes),
            "history": with_point(former.history, history_point(measured)),
        }
    )
    if record != former:
        keep(fleet, measured.host, measured.service, record, root)


def note_memory(fleet: str, host: str, service: str, memory: MemoryReport, root: Path = ROOT) -> None:
    """Keep a service's memory plan. Raises `OSError`: see `keep`."""
    keep(fleet, host, service, load_record(fleet, host, service, root).model_copy(update={"memory": memory}), root)


def note_load(fleet: str, host: str, service: str, load: LoadReport, root: Path = ROOT) -> None:
    """Keep how long a service's weights take to load. Raises `OSError`: see `keep`."""
    former = load_record(fleet, host, service, root)
    if former.load != load:
        keep(fleet, host, service, former.model_copy(update={"load": load}), root)


def note_state(fleet: str, host: str, service: str, state: State, root: Path = ROOT) -> None:
    """Keep how a service was found. Raises `OSError`: see `keep`."""
    keep(fleet, host, service, load_record(fleet, host, service, root).model_copy(update={"state": state}), root)
