"""What became of a rollout, as its hosts keep it beside their ledgers and reports tell it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

# Names the file in which a run's operations find the record, for the hosts that they are run on.
RECORD_FILE = "TINDERBOX_ROLLOUT_RECORD"

RolloutState = Literal["under way", "finished", "stopped"]


class StepRecord(BaseModel):
    """A canary or a batch. `begun`, `ended`: when, UTC; null: not yet. `failed`: host → why."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    hosts: tuple[str, ...]
    begun: str | None = None
    ended: str | None = None
    failed: dict[str, str] = {}


class RolloutRecord(BaseModel):
    """One run of a rollout; one that continues another has the same `id`.

    `why`: it stopped. `held`: hosts whose turn never came; they serve what they served. `failed`: every host that was
    touched and failed. `skipped`: those that failed, or did not answer, before anything of theirs was touched.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    by: str = ""
    state: RolloutState = "under way"
    begun: str
    ended: str | None = None
    why: str = ""
    steps: tuple[StepRecord, ...] = ()
    failed: dict[str, str] = {}
    skipped: dict[str, str] = {}
    held: tuple[str, ...] = ()

    def text(self) -> str:
        """As hosts keep it."""
        return self.model_dump_json(indent=1) + "\n"


def record_here() -> RolloutRecord | None:
    """The record of the rollout that this process is a part of; None where it is of none."""
    path = os.environ.get(RECORD_FILE)
    return RolloutRecord.model_validate(json.loads(Path(path).read_text(encoding="utf-8"))) if path else None


def newest(records: list[RolloutRecord]) -> RolloutRecord | None:
    """Of what several hosts keep, what was written last."""
    return max(records, key=lambda one: one.ended or one.begun, default=None)


def told(record: RolloutRecord) -> list[str]:
    """For people."""
    when = record.ended or record.begun
    lines = [f"rollout {record.id}: {record.state} ({when})" + (f": {record.why}" if record.why else "")]
    lines += [
        f"    {step.name}: {', '.join(step.hosts)}"
        + (f"; failed: {', '.join(step.failed)}" if step.failed else "")
        + ("" if step.ended else "; not begun" if step.begun is None else "; under way")
        for step in record.steps
    ]
    lines += [f"    held back, serving what they served: {', '.join(record.held)}"] if record.held else []
    lines += [f"    left out: {name}: {why}" for name, why in record.skipped.items()]
    return lines
