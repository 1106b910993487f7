"""What a host shows of its servers → each server: what runs, in what, and who would start it again. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Literal

from modules.adopt.starters import COMPOSE, starts

Document = Mapping[str, Any]
Kind = Literal["container", "compose", "unit", "process"]
OURS = "tinderbox.service"
_PYTHON = re.compile(r"(^|/)python[0-9.]*$")
_PROGRAMS = {"vllm": "vllm", "sglang": "sglang", "llama-server": "llama-server"}


@dataclass(frozen=True)
class Cache:
    """A folder of the hub's models as the server sees it, and where that is on the host.

    `kind`: `folder`: of the host's own; `volume`: of docker's; `inside`: in the container alone, reached by its
    process.
    """

    path: str
    on_host: str
    kind: Literal["folder", "volume", "inside"]
    models: Mapping[str, Document]


@dataclass(frozen=True)
class Observed:
    """A server that runs. `words`: its command line, secrets masked; the first is its program's name of ours.

    `program`: as its file is called in there. `named`: the container, unit or process, for people. `container`: its id.
    `executed`: it was started inside a container that itself does something else. `units`: those of the host's owner
    that would start it again. `user_unit`: it is one of a user's, which is not ours to stop.
    """

    kind: Kind
    named: str
    pid: int
    program: str
    words: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    container: str | None = None
    executed: bool = False
    units: tuple[str, ...] = ()
    user_unit: bool = False
    caches: tuple[Cache, ...] = ()
    docker: Document | None = None
    image: Document | None = None

    @property
    def has_gpu(self) -> bool:
        """Whether it was given the GPU; a process that is in no container has it."""
        if self.docker is None:
            return True
        host = self.docker["HostConfig"]
        visible = self.docker["Config"]["Env"].get("NVIDIA_VISIBLE_DEVICES", "void")
        own = host.get("Runtime") == "nvidia" and visible not in {"void", "none", ""}
        return bool(host.get("DeviceRequests") or host.get("Privileged") or own or host.get("Devices"))


@dataclass(frozen=True)
class Seen:
    """`servers`: those that could be understood as one of ours' engines. `unknown`: what else has the GPU, in words."""

    servers: tuple[Observed, ...]
    unknown: tuple[str, ...] = ()


def seen_of(text: str) -> Seen:
    """By the document that the host printed. Raises `ValueError`, `KeyError`: it is not what it should be."""
    told: dict[str, Any] = json.loads(text)
    servers = [one for process in told["processes"] for one in _server(process, told)]
    unknown = [f"{one['name']} (pid {one['pid']}) has memory of the GPU" for one in told["gpu"]]
    return Seen(tuple(servers), tuple(unknown))


def _server(process: Document, told: Document) -> Iterator[Observed]:
    both = told["containers"].get(process["container"] or "")
    docker, image = (both["container"], both["image"]) if both else (None, None)
    if docker is not None and docker["Config"]["Labels"].get(OURS):
        return
    program, words = program_of(process["words"])
    common: dict[str, Any] = {
        "pid": process["pid"],
        "program": program,
        "words": words,
        "caches": tuple(_caches(process, docker)),
    }
    if docker is None:
        yield _bare(process, common)
        return
    name, labels = docker["Name"].lstrip("/"), docker["Config"]["Labels"]
    given = (image or {}).get("Env") or {}
    own = {key: value for key, value in docker["Config"]["Env"].items() if given.get(key) != value}
    executed = not _starts_it(docker, words)
    if executed:
        own |= {key: value for key, value in process["environment"].items() if _is_set_beside(key, docker, given)}
    project = labels.get(f"{COMPOSE}.project")
    units = tuple(unit["Id"] for unit in told["units"] if starts(unit, docker))
    kind: Kind = "unit" if units else "compose" if project else "container"
    named = f"container {name}"
    if project:
        named = f"service {labels.get(f'{COMPOSE}.service')} of the compose project {project} (container {name})"
    if units:
        named = f"unit {', '.join(units)} ({named})"
    yield Observed(
        kind, named, **common, environment=own, container=docker["Id"], executed=executed, units=units,
        docker=docker, image=image,
    )  # fmt: skip


# What a shell or an entrypoint sets for everybody, and means nothing to a server.
_SHELLS = frozenset({"HOME", "PWD", "OLDPWD", "SHLVL", "_", "PATH", "TERM", "HOSTNAME", "LANG", "LS_COLORS"})


def _is_set_beside(name: str, docker: Document, image: Document) -> bool:
    return name not in docker["Config"]["Env"] and name not in image and name not in _SHELLS


def _bare(process: Document, common: dict[str, Any]) -> Observed:
    unit = process["unit"]
    environment = {key: value for key, value in process["environment"].items() if key != "HOME"}
    if unit is None:
        return Observed("process", f"process {process['pid']}", **common, environment=environment)
    user = "/" in unit
    units = () if user else (unit,)
    return Observed(
        "unit", f"unit {unit}", **common, environment=environment, units=units, user_unit=user,
    )  # fmt: skip


def program_of(words: Iterable[str]) -> tuple[str, tuple[str, ...]]:
    """The program as its file is called, and the command line as people write it: `vllm serve …`.

    An interpreter before the program's own script is left out.
    """
    told = list(words)
    if len(told) > 1 and _PYTHON.search(told[0]) and told[1] != "-m":
        told = told[1:]
    program = told[0]
    name = _PROGRAMS.get(PurePosixPath(program).name)
    return program, (name or program, *told[1:])


def _starts_it(docker: Document, words: tuple[str, ...]) -> bool:
    """Whether the container's own command is the server's start: its last words are, or a shell's line has them."""
    own = [docker["Path"], *docker["Args"]]
    tail = list(words[2:] if words[1:2] == ("serve",) else words[1:])
    line = " ".join(own)
    if tail and own[-len(tail) :] == tail:
        return True
    return any(mark in line for mark in ("vllm serve", "sglang", "llama-server", "vllm.entrypoints"))


def _caches(process: Document, docker: Document | None) -> Iterator[Cache]:
    for cache in process["caches"]:
        if docker is None:
            yield Cache(cache["path"], cache["path"], "folder", cache["models"])
            continue
        mount = mount_of(cache["path"], docker["Mounts"])
        if mount is None or mount["Type"] not in {"bind", "volume"}:
            inside = f"/proc/{process['pid']}/root{cache['path']}"
            yield Cache(cache["path"], inside, "inside", cache["models"])
            continue
        rest = cache["path"].removeprefix(mount["Destination"].rstrip("/"))
        kind: Literal["folder", "volume"] = "folder" if mount["Type"] == "bind" else "volume"
        yield Cache(cache["path"], f"{mount['Source'].rstrip('/')}{rest}", kind, cache["models"])


def mount_of(path: str, mounts: Iterable[Document]) -> Document | None:
    """The mount that a path is in, the innermost; None: it is in the container's own files, or no path at all."""
    over = [
        one
        for one in mounts
        if path == one["Destination"].rstrip("/") or path.startswith(one["Destination"].rstrip("/") + "/")
    ]
    return max(over, key=lambda one: len(one["Destination"]), default=None)
