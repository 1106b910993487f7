"""What docker holds on this host: images, containers, volumes, build cache. Changes nothing.

Docker is asked at its socket: its command line tells sizes only in words, rounded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside import docker_api
else:
    import docker_api

# Newer forms of the answer lack what is read here; older dockers know none that is newer than their own.
_FORM = (1, 44)
# All layers are measured for that.
_TIMEOUT_S = 300
# What Tinderbox calls the images that it builds or pulls (image_state.py).
OURS = re.compile(r"tinderbox/[a-z0-9]+([._-]+[a-z0-9]+)*:[0-9a-f]{12}")

Ask = Callable[[str], Any]


@dataclass(frozen=True)
class Image:
    """`names`: tags. `bytes`: what the disk gains when it alone goes; layers of several images count for none."""

    id: str
    names: tuple[str, ...]
    bytes: int

    @property
    def our_names(self) -> list[str]:
        """Those that Tinderbox gave it."""
        return sorted(name for name in self.names if OURS.fullmatch(name))


@dataclass(frozen=True)
class Container:
    """`image`: its id. `mounts`: folders of the host. `gpu`: it was given one. `service`: of ours, else empty."""

    id: str
    name: str
    image: str
    running: bool
    mounts: tuple[str, ...] = ()
    gpu: bool = False
    service: str = ""

    @property
    def ours(self) -> bool:
        """Whether Tinderbox made it."""
        return bool(self.service) or self.name.startswith("tinderbox-")


@dataclass(frozen=True)
class Cached:
    """A record of the build cache. `bytes`: that its going frees. `created`, `used`: seconds since 1970."""

    id: str
    bytes: int
    created: float
    used: float


@dataclass(frozen=True)
class Store:
    """All of it. `volumes`: names, those without one of their own, too."""

    images: tuple[Image, ...] = ()
    containers: tuple[Container, ...] = ()
    cache: tuple[Cached, ...] = ()
    volumes: tuple[str, ...] = ()

    @property
    def others_volumes(self) -> list[str]:
        """Volumes that Tinderbox did not make: what somebody has stored, also where no container has it now."""
        return [name for name in self.volumes if not name.startswith("tinderbox-")]

    @property
    def others(self) -> list[Container]:
        """Containers that Tinderbox did not make."""
        return [one for one in self.containers if not one.ours]

    def users_of(self, image: Image) -> list[str]:
        """Containers of others that were made from an image, in words."""
        return [f"container {one.name} uses it" for one in self.others if one.image == image.id]

    def mounted(self, folder: Path) -> list[str]:
        """Containers of others that have a folder, or one that it lies in or that lies in it, in words."""
        return [
            f"container {one.name} mounts {mount}"
            for one in self.others for mount in one.mounts
            if mount != "/" and (folder.is_relative_to(mount) or Path(mount).is_relative_to(folder))
        ]  # fmt: skip


def ask(path: str) -> Any:
    """What docker answers to a question of its API. Raises `OSError`: it does not answer, or refuses."""
    try:
        return docker_api.ask("GET", path, timeout_s=_TIMEOUT_S)
    except docker_api.DockerApiError as error:
        raise OSError(f"docker answered {path}: {error}") from error


def look(ask: Ask = ask) -> Store | None:
    """What is there; None where docker does not answer, or is not installed."""
    try:
        form = min(_FORM, tuple(int(part) for part in ask("/version")["ApiVersion"].split(".")))
        at = f"/v{form[0]}.{form[1]}"
        found = ask(f"{at}/system/df")
    except OSError:
        return None
    details = {}
    for one in found.get("Containers") or ():
        with suppress(OSError):  # it went meanwhile
            details[one["Id"]] = ask(f"{at}/containers/{one['Id']}/json")["HostConfig"]
    return store_of(found, details)


def store_of(found: Mapping[str, Any], details: Mapping[str, Mapping[str, Any]]) -> Store:
    """By docker's answers: of the whole, and of each container's settings."""
    return Store(
        images=tuple(_image(one) for one in found.get("Images") or ()),
        containers=tuple(_container(one, details.get(one["Id"], {})) for one in found.get("Containers") or ()),
        cache=tuple(_cached(one) for one in found.get("BuildCache") or ()),
        volumes=tuple(str(one["Name"]) for one in found.get("Volumes") or ()),
    )


def _image(one: Mapping[str, Any]) -> Image:
    names = [name for name in one.get("RepoTags") or () if "<none>" not in name]
    return Image(one["Id"], tuple(names), max(0, int(one["Size"]) - max(0, int(one.get("SharedSize") or 0))))


def _container(one: Mapping[str, Any], settings: Mapping[str, Any]) -> Container:
    labels = one.get("Labels") or {}
    return Container(
        id=one["Id"],
        name=str((one.get("Names") or [one["Id"][:12]])[0]).lstrip("/"),
        image=one["ImageID"],
        running=one.get("State") in {"running", "paused", "restarting"},
        mounts=tuple(str(mount["Source"]) for mount in one.get("Mounts") or () if mount.get("Type") == "bind"),
        gpu=settings.get("Runtime") == "nvidia" or bool(settings.get("DeviceRequests")),
        service=str(labels.get("tinderbox.service") or ""),
    )


def _cached(one: Mapping[str, Any]) -> Cached:
    created = _seconds(one.get("CreatedAt"))
    # What an image has, too, stays on the disk when the record of it goes.
    freed = 0 if one.get("Shared") else int(one["Size"])
    return Cached(one["ID"], freed, created, _seconds(one.get("LastUsedAt")) or created)


def _seconds(text: str | None) -> float:
    found = re.match(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,6})?\d*(Z|[+-]\d\d:\d\d)", text or "")
    return datetime.fromisoformat(f"{found[1]}{found[2] or ''}{found[3]}").timestamp() if found else 0.0


def made_within(cache: Iterable[Cached], spans: Iterable[tuple[float, float]]) -> list[Cached]:
    """Records that were made, and used for the last time, during these spans: nobody else's build has used them."""
    times = list(spans)
    # In use is also what an image that is about to go was made of; docker keeps what a build uses just now.
    return [one for one in cache if all(_is_within(time, times) for time in (one.created, one.used))]


def _is_within(time: float, spans: Iterable[tuple[float, float]]) -> bool:
    return any(begin <= time <= end for begin, end in spans)
