"""What check tells, as data. Its schema is docs/check.schema.json.

`python -m modules.check.document` writes the schema.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "check.schema.json"
VERSION: Literal[1] = 1

# Unknown: the host was not reached or not looked at. That is neither failed nor fine.
Verdict = Literal["ready", "slow", "blocked", "unknown"]


class Part(BaseModel):
    """Of the document."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class FindingPart(Part):
    """One finding. `id`: of docs/check.md; `cost`: in words; `commands`: the remedy's, for the host's shell, in order.

    `settings`: the remedy's, key of the host's settings → value; null takes it away. `stage`: the later one that would
    refuse the host; empty where nothing would be begun, or nothing is refused.
    """

    id: str
    severity: Literal["blocked", "slow", "note"]
    what: str
    measured: str
    wanted: str
    cost: str
    remedy: str
    commands: tuple[str, ...] = ()
    settings: dict[str, Any] = {}
    stage: str = ""


class Move(Part):
    """What a deploy has to bring to the host. `bytes`: those still to come, 0: it is there; null: not known before."""

    kind: Literal["weights", "image", "encodings"]
    what: str
    bytes: int | None


class Disk(Part):
    """A file system to which something goes, in bytes. `needs`: without the reserve."""

    mount: str
    needs: int
    reserve: int
    free: int


class Minutes(Part):
    """How long a part of a deploy takes. `from_`, `to`: null where it is unknown. `source`: of the estimate, or why."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    what: str
    from_: float | None = Field(alias="from")
    to: float | None
    source: str


class Memory(Part):
    """A service's memory plan, in bytes. `known_by`: of its weights; `fits`: null where nothing can be reckoned.

    `claim`: what it takes; `start_needs`: what must be available for its start; `of`: what the machine has; `left`: of
    that, with the other services and the system's reserve taken off.
    """

    service: str
    known_by: Literal["checkpoint", "catalog", "unknown"]
    fits: bool | None
    claim: int | None = None
    start_needs: int | None = None
    of: int | None = None
    left: int | None = None
    why: str = ""


class HostCheck(Part):
    """A host. `why`: of an unknown one, what it said or did not. `simulated`: one of the lab's.

    `starts`: the services that a deploy starts, since they do not run.
    """

    host: str
    verdict: Verdict
    simulated: bool = False
    findings: tuple[FindingPart, ...] = ()
    moves: tuple[Move, ...] = ()
    disks: tuple[Disk, ...] = ()
    starts: tuple[str, ...] = ()
    minutes: tuple[Minutes, ...] = ()
    memory: tuple[Memory, ...] = ()
    why: tuple[str, ...] = ()


class CheckDocument(Part):
    """A fleet. `status`: what the program ends with; `seconds`: what it took."""

    version: Literal[1] = VERSION
    fleet: str
    status: int
    seconds: float
    hosts: tuple[HostCheck, ...]


def schema() -> str:
    """The text of docs/check.schema.json."""
    found = CheckDocument.model_json_schema(mode="serialization", by_alias=True)
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **found}, indent=2) + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(schema(), encoding="utf-8")
