"""The state of hosts at one moment, as data. Its schema is docs/status.schema.json.

`python -m modules.status.report` writes the schema. Whatever is null is unknown: neither zero nor fine.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from modules.reporting.report import Part, State

SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "status.schema.json"

# Of Tinderbox on the host: none yet; those of this checkout; those of another one.
Programs = Literal["none", "same", "other", "unknown"]


class GateStatus(Part):
    """A gate's measurement. `figure`: what decided, in `metric`'s unit; `reason`: why that is no pass."""

    release: str
    finished: str
    verdict: str
    metric: str | None = None
    figure: float | None = None
    reason: str = ""


class Watchdog(Part):
    """`active`: whether it watches now. `generated_s`: seconds since text last came; `misses`: checks since, in vain.

    `word`: the last restart that it asked for, as the ledger has it, at `word_at`.
    """

    active: bool | None = None
    generated_s: float | None = None
    misses: int | None = None
    word: str | None = None
    word_at: str | None = None


class ServiceStatus(Part):
    """One service. `wanted`: by the fleet file. `deployed`: whether Tinderbox has put it on the host.

    `doing`: starting, stopping, or waiting to be started again. `since`: of the state, UTC, by the host's clock, as is
    `for_s`. `release`: whose files are in force. `tokens_s`, `prompt_tokens_s`: counted over `window_s` seconds.
    `running`, `waiting`: requests. `claim`, `used`: bytes of memory. `closed`: gateways are told to send it nothing.
    `worker_of`: the host that has its API, where this one only takes part. `why`: it failed, or the like.
    """

    name: str
    wanted: bool = True
    deployed: bool | None = None
    state: State = "unknown"
    doing: str | None = None
    since: str | None = None
    for_s: float | None = None
    release: str | None = None
    standing: str | None = None
    port: int | None = None
    worker_of: str | None = None
    tokens_s: float | None = None
    prompt_tokens_s: float | None = None
    window_s: float | None = None
    running: int | None = None
    waiting: int | None = None
    kv_percent: float | None = None
    claim: int | None = None
    used: int | None = None
    gate: GateStatus | None = None
    gate_of_another: GateStatus | None = None
    watchdog: Watchdog | None = None
    closed: bool | None = None
    why: str | None = None


class GpuStatus(Part):
    """MHz, W, °C, percent; null where the GPU does not tell. `held_back`: why its clocks are; empty proves nothing."""

    name: str
    simulated: bool
    clock_mhz: float | None = None
    max_clock_mhz: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    busy_percent: float | None = None
    held_back: tuple[str, ...] = ()


class Stranger(Part):
    """A process that is none of Tinderbox's, where one of ours computes or would listen. It is only named.

    `where`: `GPU`, or `port` and its number. `memory`: bytes on the GPU.
    """

    where: str
    pid: int | None
    name: str | None
    container: str | None = None
    memory: int | None = None


class HostStatus(Part):
    """One host. `answers`: whether it told; else `trouble` says why not and what to do, and all of it is unknown.

    `seen`: when it last answered, UTC. `root`: whether it could be asked as root, without which less is known.
    `memory`, `available`, `swap_used`: bytes. `run`: who changes it now. `jobs`: those under way.
    """

    fleet: str
    name: str
    address: str
    answers: bool
    seen: str | None = None
    trouble: str | None = None
    programs: Programs = "unknown"
    root: bool | None = None
    memory: int | None = None
    available: int | None = None
    swap_used: int | None = None
    gpu: GpuStatus | None = None
    gpu_trouble: str | None = None
    strangers: tuple[Stranger, ...] = ()
    run: str | None = None
    jobs: tuple[str, ...] = ()
    services: tuple[ServiceStatus, ...] = ()


class StatusReport(Part):
    """`at`: when it was asked, UTC; `seconds`: how long all of it took."""

    schema_version: Annotated[Literal[1], Field(description="raised when a reader would have to change")] = 1
    at: str
    seconds: float
    hosts: tuple[HostStatus, ...]


def schema_text() -> str:
    """The schema as the text of its file."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **StatusReport.model_json_schema()}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(schema_text(), encoding="utf-8")
