"""Taking a lab up, from whatever is there of it."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import docker
from docker.models.containers import Container

from modules.lab import daemon
from modules.lab.containers import (
    MIRROR_HOSTNAME,
    Access,
    HostState,
    Place,
    admit,
    containers_of,
    create_host,
    create_mirror,
    hosts_of,
    mirror_of,
    mirror_recipe,
    port_of,
    states_of,
)
from modules.lab.content import mirror_content
from modules.lab.down import take_over
from modules.lab.files import write_fleet, write_key, write_ssh, write_trust
from modules.lab.images import host_image
from modules.lab.layout import Layout
from modules.lab.machine import need
from modules.lab.network import Addresses, addresses_of, create_network
from modules.lab.pieces.identity import MIRROR_NAMES
from modules.lab.pieces.make_all import make_all
from modules.lab.pieces.piece import Piece, in_use, locked
from modules.lab.pieces.rootfs import host_rootfs
from modules.lab.ports import choose_port
from modules.lab.progress import Progress
from modules.lab.readiness import await_host, await_mirror, host_keys
from modules.lab.watches import need_watches

# Names an image to make new hosts of, in place of the lab's: for copies of a host, with all that was deployed to it.
HOST_IMAGE = "TINDERBOX_LAB_HOST_IMAGE"


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
    need({"ssh": "openssh-client"})
    # Until its containers run, nothing shows others that this lab needs the daemon and the host image.
    with in_use(daemon.IN_USE):
        return _up(layout, count, progress)


def _up(layout: Layout, count: int, progress: Progress) -> list[HostState]:
    content, rootfs = mirror_content(), host_rootfs()
    with ThreadPoolExecutor(1) as pool:
        pieces = pool.submit(make_all, [rootfs, *content.values()], progress)
        client = daemon.require()
        pieces.result()
    with progress.step("make the host image"):
        image = host_image(client, rootfs)
    # Two labs that come up together shall not choose the same port.
    with locked("up"):
        take_over(client, layout)
        write_trust(layout, content["tls"].path)
        _create(client, layout, count, Material(image, content, write_key(layout)))
    hosts = hosts_of(client, layout)
    with progress.step(f"boot the mirror and {len(hosts)} host{'s' * (len(hosts) != 1)}"):
        _await(client, layout, hosts)
    ports = {host: port_of(container) for host, container in hosts.items()}
    write_ssh(layout, ports, {host: host_keys(container) for host, container in hosts.items()})
    write_fleet(layout, ports)
    return states_of(client, layout)


def _create(client: docker.DockerClient, layout: Layout, count: int, material: Material) -> None:
    """Create what is missing, and start what is stopped."""
    addresses = addresses_of(client, layout) or create_network(client, layout)
    access = Access(addresses.mirror, material.public_key)
    existing = _usable_hosts(client, layout)
    numbers = {layout.host(number): number for number in range(1, max(count, len(existing)) + 1)}
    need_watches(sum(name not in existing or existing[name].status != "running" for name in numbers))
    _write_mirror_state(layout, addresses, numbers)
    mirror = _usable_mirror(client, layout, material)
    taken = {port_of(container) for container in containers_of(client)}
    for name, number in {MIRROR_HOSTNAME: 0, **numbers}.items():
        if name in existing or (name == MIRROR_HOSTNAME and mirror is not None):
            continue
        port = choose_port(layout.name, number, taken)
        taken.add(port)
        if name == MIRROR_HOSTNAME:
            place = Place(addresses.mirror, port)
            mirror = create_mirror(
                client,
                layout,
                image=material.image,
                place=place,
                content=material.content,
                recipe=_recipe(material),
            )
        else:
            image = os.environ.get(HOST_IMAGE) or material.image
            create_host(client, layout, name, image=image, place=Place(addresses.host(number), port), access=access)
    for container in existing.values():
        admit(container, access)
    for container in containers_of(client, layout):
        if container.status != "running":
            container.start()


def _usable_hosts(client: docker.DockerClient, layout: Layout) -> dict[str, Container]:
    """The hosts that are there. One that was never started is what a killed `up` left half made: it goes."""
    hosts = hosts_of(client, layout)
    for container in hosts.values():
        if container.status == "created":
            container.remove(force=True)
    return {host: container for host, container in hosts.items() if container.status != "created"}


def _usable_mirror(client: docker.DockerClient, layout: Layout, material: Material) -> Container | None:
    """The mirror, if it serves what it should. Another one goes: it keeps nothing."""
    mirror = mirror_of(client, layout)
    if mirror is not None and (mirror.status == "created" or mirror_recipe(mirror) != _recipe(material)):
        mirror.remove(force=True)
        return None
    return mirror


def _recipe(material: Material) -> str:
    keys = {name: piece.key for name, piece in material.content.items()}
    # The key stands for the lab's folder, in which the mirror keeps its state: a new folder has a new key.
    return json.dumps([material.image, material.public_key, keys], sort_keys=True)


def _write_mirror_state(layout: Layout, addresses: Addresses, numbers: dict[str, int]) -> None:
    layout.mirror_state.mkdir(parents=True, exist_ok=True)
    hosts = {host: addresses.host(number) for host, number in numbers.items()}
    names = {**dict.fromkeys(MIRROR_NAMES, addresses.mirror), **hosts}
    fresh = layout.mirror_state / "names.json.new"
    fresh.write_text(json.dumps(names, indent=1))
    fresh.rename(layout.mirror_state / "names.json")


def _await(client: docker.DockerClient, layout: Layout, hosts: dict[str, Container]) -> None:
    mirror = mirror_of(client, layout)
    with ThreadPoolExecutor(len(hosts) + 1) as pool:
        waits = [pool.submit(await_host, container) for container in hosts.values()]
        if mirror is not None:
            waits.append(pool.submit(await_mirror, mirror))
        for wait in waits:
            wait.result()
