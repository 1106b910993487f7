"""Up, down, restart, clean."""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import docker
from docker.errors import NotFound
from docker.models.containers import Container

from modules.lab import daemon
from modules.lab.containers import (
    CONTENT_LABEL,
    MIRROR_HOSTNAME,
    Access,
    Place,
    containers_of,
    content_key,
    create_host,
    create_mirror,
    port_of,
)
from modules.lab.errors import LabError
from modules.lab.files import write_fleet, write_key, write_ssh, write_trust
from modules.lab.images import host_image, remove_images
from modules.lab.layout import Layout
from modules.lab.model.repository import hub
from modules.lab.network import Addresses, addresses_of, create_network
from modules.lab.pieces.apt import apt
from modules.lab.pieces.encodings import encodings
from modules.lab.pieces.identity import MIRROR_NAMES, identity
from modules.lab.pieces.make_all import make_all
from modules.lab.pieces.piece import Piece, cache_directory
from modules.lab.pieces.registry import registry
from modules.lab.pieces.rootfs import host_rootfs
from modules.lab.pieces.wheels import wheelhouse
from modules.lab.ports import choose_port
from modules.lab.progress import Progress
from modules.lab.readiness import await_host, await_mirror, host_keys


@dataclass(frozen=True)
class HostState:
    """A host as `status` shows it."""

    host: str
    port: int
    state: str


@dataclass(frozen=True)
class Material:
    """What containers are made of. `content`: the mirror's; `public_key`: what hosts let in."""

    image: str
    content: dict[str, Piece]
    public_key: str


def up(layout: Layout, count: int, progress: Progress) -> list[HostState]:
    """Start the lab with at least `count` hosts. What is up already stays as it is.

    Raises:
        LabError: something is missing on this machine, a piece can not be made, or a container does not come up.

    """
    content = {
        "hub": hub(),
        "encodings": encodings(),
        "apt": apt(),
        "wheels": wheelhouse(),
        "registry": registry(),
        "tls": identity(),
    }
    rootfs = host_rootfs()
    with ThreadPoolExecutor(1) as pool:
        pieces = pool.submit(make_all, [rootfs, *content.values()], progress)
        client = daemon.require()
        pieces.result()
    with progress.step("host image"):
        image = host_image(client, rootfs)
    write_trust(layout, content["tls"].path)
    material = Material(image, content, write_key(layout))
    with _one_at_a_time():
        _create(client, layout, count, material)
    return _settle(client, layout, progress)


def down(layout: Layout) -> list[str]:
    """Take the lab away, with all that was made for it but the cached pieces. Returns what was removed."""
    client = daemon.connect()
    removed: list[str] = []
    if client is not None:
        for container in containers_of(client, layout.name):
            container.remove(force=True, v=True)
            removed.append(f"container {container.name}")
        label = {"label": f"tinderbox.lab={layout.name}"}
        for network in client.networks.list(filters=label):
            network.remove()
            removed.append(f"network {network.name}")
        for volume in client.volumes.list(filters=label):
            volume.remove()
            removed.append(f"volume {volume.name}")
        removed += [f"image {tag}" for tag in remove_images(client)]
        if daemon.stop_if_ours(client):
            removed.append("dockerd, which the lab had started")
    if layout.folder.exists():
        shutil.rmtree(layout.folder)
        removed.append(str(layout.folder))
    return removed


def status(layout: Layout) -> list[HostState]:
    """The containers of the lab, and how they are."""
    client = daemon.connect()
    if client is None:
        return []
    return [
        HostState(str(c.attrs["Config"]["Hostname"]), port_of(c), c.status) for c in containers_of(client, layout.name)
    ]


def restart(layout: Layout, host: str) -> None:
    """Restart a host, as by its power button held briefly: systemd shuts down and boots; disks and ports stay.

    Raises:
        LabError: there is no such host, or it does not come back.

    """
    client = daemon.connect()
    if client is None:
        raise LabError("no docker daemon answers, so there is no lab: run `make lab-up`")
    try:
        container = client.containers.get(layout.container(host))
    except NotFound as error:
        known = ", ".join(sorted(hosts_of(client, layout))) or "none"
        raise LabError(f"lab {layout.name} has no host {host!r} (it has: {known})") from error
    container.restart(timeout=60)
    await_host(container)


def clean(layout: Layout) -> list[str]:
    """Take the lab away, and the cached pieces, too.

    Raises:
        LabError: another lab is up, whose mirror serves those pieces.

    """
    removed = down(layout)
    client = daemon.connect()
    others = (
        sorted({container.labels["tinderbox.lab"] for container in containers_of(client)}) if client is not None else []
    )
    if others:
        raise LabError(f"the cached pieces are in use by lab {', '.join(others)}: take it down first")
    if cache_directory().exists():
        shutil.rmtree(cache_directory())
        removed.append(str(cache_directory()))
    return removed


def _create(client: docker.DockerClient, layout: Layout, count: int, material: Material) -> None:
    """Create what is missing, and start what is stopped."""
    addresses = addresses_of(client, layout) or create_network(client, layout)
    access = Access(addresses.mirror, material.public_key)
    existing = hosts_of(client, layout)
    numbers = {layout.host(number): number for number in range(1, max(count, len(existing)) + 1)}
    _write_mirror_state(layout, addresses, numbers)
    mirror = _current_mirror(client, layout, content_key(material.image, material.content))
    taken = {port_of(container) for container in containers_of(client)}
    missing = {host: number for host, number in numbers.items() if host not in existing}
    if mirror is None:
        port = choose_port(layout.name, 0, taken)
        taken.add(port)
        mirror = create_mirror(
            client, layout, image=material.image, place=Place(addresses.mirror, port), content=material.content
        )
    for host, number in missing.items():
        port = choose_port(layout.name, number, taken)
        taken.add(port)
        place = Place(addresses.host(number), port)
        create_host(client, layout, host, image=material.image, place=place, access=access)
    for container in (mirror, *existing.values()):
        if container.status != "running":
            container.start()


def _current_mirror(client: docker.DockerClient, layout: Layout, key: str) -> Container | None:
    """The lab's mirror, if it serves what it should. One that does not is removed: it keeps nothing."""
    try:
        mirror = client.containers.get(layout.mirror)
    except NotFound:
        return None
    if mirror.labels.get(CONTENT_LABEL) == key:
        return mirror
    mirror.remove(force=True)
    return None


def _write_mirror_state(layout: Layout, addresses: Addresses, numbers: dict[str, int]) -> None:
    layout.mirror_state.mkdir(parents=True, exist_ok=True)
    names = dict.fromkeys(MIRROR_NAMES, addresses.mirror) | {
        host: addresses.host(number) for host, number in numbers.items()
    }
    (layout.mirror_state / "names.json").write_text(json.dumps(names, indent=1))


def _settle(client: docker.DockerClient, layout: Layout, progress: Progress) -> list[HostState]:
    """Wait until all is up, and write down how it is reached."""
    hosts = hosts_of(client, layout)
    mirror = client.containers.get(layout.mirror)
    with (
        progress.step(f"boot the mirror and {len(hosts)} host{'s' * (len(hosts) != 1)}"),
        ThreadPoolExecutor(len(hosts) + 1) as pool,
    ):
        waits = [
            pool.submit(await_mirror, mirror),
            *(pool.submit(await_host, container) for container in hosts.values()),
        ]
        for wait in waits:
            wait.result()
    ports = {host: port_of(container) for host, container in hosts.items()}
    write_ssh(layout, ports, {host: host_keys(container) for host, container in hosts.items()})
    write_fleet(layout, ports)
    return status(layout)


def hosts_of(client: docker.DockerClient, layout: Layout) -> dict[str, Container]:
    """The lab's hosts by name, in the order of their numbers."""
    found = {str(container.attrs["Config"]["Hostname"]): container for container in containers_of(client, layout.name)}
    found.pop(MIRROR_HOSTNAME, None)
    return dict(sorted(found.items(), key=lambda item: int(item[0].rpartition("-")[2])))


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Two labs that come up together shall not choose the same port."""
    with (cache_directory() / ".up.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
