"""The containers of a lab: its hosts and its mirror."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
from docker.models.containers import Container

from modules.lab.layout import LABEL, Layout
from modules.lab.pieces.identity import MIRROR_NAMES
from modules.lab.pieces.piece import Piece

PORT_LABEL = "tinderbox.lab.port"
CONTENT_LABEL = "tinderbox.lab.content"
MIRROR_HOSTNAME = "mirror"
_MIRROR_CODE = Path(__file__).parent / "mirror"
_SPARK_UID = 1000
# What systemd and an inner dockerd need. Not --privileged: that fails on machines that themselves lack a capability.
_CAPABILITIES = [
    "SYS_ADMIN",
    "NET_ADMIN",
    "SYS_PTRACE",
    "IPC_LOCK",
    "SYS_NICE",
    "DAC_READ_SEARCH",
    "LINUX_IMMUTABLE",
    "SYSLOG",
]
_SECURITY = ["seccomp=unconfined", "apparmor=unconfined"]
_SHARED_MEMORY = "2g"  # vLLM's workers want more than docker's 64 MiB


@dataclass(frozen=True)
class Place:
    """Where a container is on the lab's network and on this machine's loopback."""

    address: str
    port: int


@dataclass(frozen=True)
class Access:
    """What a new host is told: who names names, and whose key opens it."""

    name_server: str
    public_key: str


def create_host(
    client: docker.DockerClient, layout: Layout, host: str, *, image: str, place: Place, access: Access
) -> Container:
    """Create a host and start it."""
    volume = layout.docker_volume(host)
    client.volumes.create(volume, labels=layout.labels)
    settings = client.api.create_host_config(
        cap_add=_CAPABILITIES, security_opt=_SECURITY, device_cgroup_rules=["a *:* rwm"], cgroupns="host",
        tmpfs={"/run": "", "/tmp": "exec"},  # noqa: S108 - the host's own
        shm_size=_SHARED_MEMORY, binds=[f"{volume}:/var/lib/docker", "/sys/fs/cgroup:/sys/fs/cgroup:rw"],
        network_mode=layout.network, port_bindings={22: ("127.0.0.1", place.port)},
    )  # fmt: skip
    # An inner runc mounts /proc anew, which the kernel allows only where nothing of the outer one is covered.
    settings |= {"MaskedPaths": [], "ReadonlyPaths": []}
    container = _create(
        client, layout, layout.container(host), image=image, hostname=host, host_config=settings, ports=[22],
        labels={PORT_LABEL: str(place.port)}, networking_config=_endpoint(client, layout, place.address, [host]),
    )  # fmt: skip
    _put(container, "/etc/tinderbox-lab", {"name-server": access.name_server}, uid=0, mode=0o644)
    _put(container, "/home/spark/.ssh", {"authorized_keys": access.public_key}, uid=_SPARK_UID, mode=0o600)
    container.start()
    return container


def create_mirror(
    client: docker.DockerClient, layout: Layout, *, image: str, place: Place, content: Mapping[str, Piece]
) -> Container:
    """Create the mirror and start it. `content`: name of a folder under /srv/mirror → the piece that it is."""
    binds = [f"{piece.path}:/srv/mirror/{name}:ro" for name, piece in content.items()]
    binds += [f"{_MIRROR_CODE}:/opt/lab/mirror:ro", f"{layout.mirror_state}:/var/lib/mirror"]
    settings = client.api.create_host_config(
        binds=binds, init=True, network_mode=layout.network, port_bindings={443: ("127.0.0.1", place.port)}
    )
    container = _create(
        client, layout, layout.mirror, image=image, hostname=MIRROR_HOSTNAME, host_config=settings, ports=[443],
        labels={PORT_LABEL: str(place.port), CONTENT_LABEL: content_key(image, content)},
        command=["python3", "-B", "-m", "mirror"], working_dir="/opt/lab", stop_signal="SIGTERM",
        networking_config=_endpoint(client, layout, place.address, MIRROR_NAMES),
    )  # fmt: skip
    container.start()
    return container


def content_key(image: str, content: Mapping[str, Piece]) -> str:
    """Changes when a mirror has to be made anew."""
    return json.dumps([image, {name: piece.key for name, piece in content.items()}], sort_keys=True)


def containers_of(client: docker.DockerClient, name: str | None = None) -> list[Container]:
    """A lab's containers (or those of all labs), running or not, by name."""
    label = LABEL if name is None else f"{LABEL}={name}"
    return sorted(client.containers.list(all=True, filters={"label": label}), key=lambda container: str(container.name))


def port_of(container: Container) -> int:
    """The loopback port that it was made with."""
    return int(container.labels[PORT_LABEL])


def _create(
    client: docker.DockerClient, layout: Layout, name: str, *, labels: Mapping[str, str], **settings: Any
) -> Container:
    created = client.api.create_container(name=name, labels={**layout.labels, **labels}, **settings)
    return client.containers.get(created["Id"])


def _endpoint(client: docker.DockerClient, layout: Layout, address: str, aliases: Sequence[str]) -> dict[str, Any]:
    endpoint = client.api.create_endpoint_config(ipv4_address=address, aliases=list(aliases))
    return client.api.create_networking_config({layout.network: endpoint})


def _put(container: Container, folder: str, files: Mapping[str, str], *, uid: int, mode: int) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.uid, entry.gid, entry.mode = len(text.encode()), uid, uid, mode
            archive.addfile(entry, io.BytesIO(text.encode()))
    container.put_archive(folder, buffer.getvalue())
