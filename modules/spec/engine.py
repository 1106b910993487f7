"""Engines: the programs that serve, as data."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from modules.spec.base import Strict

# true: the bare flag; false: the flag left out; a list: its values behind one flag.
FlagValue = bool | int | float | str | tuple[str, ...]
Flags = dict[str, FlagValue]


class Container(Strict):
    """How an engine's container runs. Limits that a host's kernel refuses (the lab's) can be left out by the fleet file."""

    ipc: Literal["host", "private"] = "host"
    shm_size: str | None = None
    gpus: bool = True
    ulimits: dict[str, str] = {}
    devices: tuple[str, ...] = ()  # passed on where the node exists on the host
    capabilities: tuple[str, ...] = ()


class Readiness(Strict):
    """When an engine counts as ready. `wanted_log`/`refused_log`: regular expressions over the container's log."""

    start_minutes: float = Field(gt=0)
    wanted_log: tuple[str, ...] = ()
    refused_log: tuple[str, ...] = ()


class Engine(Strict):
    """A program that serves.

    `command`: argv in the container, where `{model}` stands for the model's path or name, `{port}`, `{listen}` and
    `{served_as}` for the service's. `flags`: for every profile; `profiles`: name → flags on top. `caches`: name → path in
    the container of a directory that outlives it.
    """

    recipe: str
    command: tuple[str, ...]
    flags: Flags = {}
    profiles: dict[str, Flags] = Field(min_length=1)
    environment: dict[str, str] = {}
    container: Container = Container()
    caches: dict[str, str] = {}
    readiness: Readiness
    api_key_variable: str | None = None
    process: str  # regular expression over the host's process list that finds this engine
    source: str
    verified: str = "unverified on hardware"
