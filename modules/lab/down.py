"""Taking a lab down: all that was made for it, and nothing else."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import docker
from docker.models.containers import Container

from modules.lab import daemon
from modules.lab.containers import containers_of, foreign_containers
from modules.lab.errors import LabError
from modules.lab.images import remove_images
from modules.lab.layout import FOLDER_LABEL, LABEL, Layout
from modules.lab.pieces.piece import cache_directory, unused


def down(layout: Layout) -> list[str]:
    """Take the lab away; cached pieces stay. Returns what was removed."""
    # A daemon that the lab started is not there any more after a reboot, but the lab's containers are.
    client = daemon.connect() or (daemon.require() if daemon.started_by_us() else None)
    removed: list[str] = []
    if client is not None:
        removed += _remove_from_docker(client, layout.name, layout.made)
        with unused(daemon.IN_USE) as last:
            if last:
                removed += [f"image {tag}" for tag in remove_images(client)]
            if last and daemon.stop_if_ours(client):
                removed.append("dockerd, which the lab had started")
    if layout.folder.exists():
        shutil.rmtree(layout.folder)
        removed.append(str(layout.folder))
    return removed


def take_over(client: docker.DockerClient, layout: Layout) -> None:
    """Make room where a lab of the same name was left behind by another checkout.

    Raises:
        LabError: that lab is running.

    """
    foreign = foreign_containers(client, layout)
    folders = sorted({container.labels[FOLDER_LABEL] for container in foreign})
    if any(container.status == "running" for container in foreign):
        raise LabError(
            f"a lab {layout.name} of another checkout is up ({', '.join(folders)}): "
            "take it down there, or give this one another name (--name)"
        )
    if foreign:
        _remove_from_docker(client, layout.name, lambda labels: not layout.made(labels))


def clean(layout: Layout) -> list[str]:
    """Take the lab away, and the cached pieces, too.

    Raises:
        LabError: another lab is up, whose mirror serves those pieces.

    """
    removed = down(layout)
    client = daemon.connect()
    others = sorted({each.labels[LABEL] for each in containers_of(client) if _uses_cache(each)}) if client else []
    if others:
        raise LabError(f"the cached pieces are in use by lab {', '.join(others)}: take it down first")
    if cache_directory().exists():
        shutil.rmtree(cache_directory())
        removed.append(str(cache_directory()))
    return removed


def _uses_cache(container: Container) -> bool:
    sources = (str(mount.get("Source", "")) for mount in container.attrs["Mounts"])
    return any(Path(source).is_relative_to(cache_directory()) for source in sources)


def _remove_from_docker(client: docker.DockerClient, name: str, mine: Callable[[Mapping[str, str]], bool]) -> list[str]:
    removed = []
    named: dict[str, str | list[str] | bool] = {"label": f"{LABEL}={name}"}
    for container in client.containers.list(all=True, filters=named):
        if mine(container.labels):
            container.remove(force=True, v=True)
            removed.append(f"container {container.name}")
    for network in client.networks.list(filters=named):
        if mine(network.attrs["Labels"]):
            network.remove()
            removed.append(f"network {network.name}")
    for volume in client.volumes.list(filters=named):
        if mine(volume.attrs["Labels"]):
            volume.remove()
            removed.append(f"volume {volume.name}")
    return removed
