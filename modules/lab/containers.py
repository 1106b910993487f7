"""The containers of a lab: its hosts and its mirror."""

from __future__ import annotations

import io
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
RECIPE_LABEL = "tinderbox.lab.recipe"
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
class HostState:
    """A container as people are shown it."""

    host: str
    port: int
    state: str


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
    admit(container, access)
    container.start()
    return container


def create_mirror(
    client: docker.DockerClient, layout: Layout, *, image: str, place: Place, content: Mapping[str, Piece], recipe: str
) -> Container:
    """Create the mirror and start it.

    `content`: name of a folder under /srv/mirror → the piece that it is. `recipe`: remembered, for `mirror_recipe`.
    """
    binds = [f"{piece.path}:/srv/mirror/{name}:ro" for name, piece in content.items()]
    binds += [f"{_MIRROR_CODE}:/opt/lab/mirror:ro", f"{layout.mirror_state}:/var/lib/mirror"]
    settings = client.api.create_host_config(
        binds=binds, init=True, network_mode=layout.network, port_bindings={443: ("127.0.0.1", place.port)}
    )
    container = _create(
        client, layout, layout.mirror, image=image, hostname=MIRROR_HOSTNAME, host_config=settings, ports=[443],
        labels={PORT_LABEL: str(place.port), RECIPE_LABEL: recipe},
        command=["python3", "-B", "-m", "mirror"], working_dir="/opt/lab", stop_signal="SIGTERM",
        networking_config=_endpoint(client, layout, place.address, MIRROR_NAMES),
    )  # fmt: skip
    container.start()
    return container


def admit(container: Container, access: Access) -> None:
    """Tell a host, running or not, who names names, and whose key to let in."""
    _put(container, "/etc/tinderbox-lab", {"name-server": access.name_server}, uid=0, mode=0o644)
    _put(container, "/home/spark/.ssh", {"authorized_keys": access.public_key}, uid=_SPARK_UID, mode=0o600)


def containers_of(client: docker.DockerClient, layout: Layout | None = None) -> list[Container]:
    """A lab's containers (or those of all labs), running or not, by name."""
    return [each for each in _labelled(client, layout) if layout is None or layout.made(each.labels)]


def foreign_containers(client: docker.DockerClient, layout: Layout) -> list[Container]:
    """Containers of a lab of the same name that another checkout made."""
    return [each for each in _labelled(client, layout) if not layout.made(each.labels)]


def hosts_of(client: docker.DockerClient, layout: Layout) -> dict[str, Container]:
    """The lab's hosts by name, in the order of their numbers."""
    found = {_hostname(container): container for container in containers_of(client, layout)}
    found.pop(MIRROR_HOSTNAME, None)
    return dict(sorted(found.items(), key=lambda item: int(item[0].rpartition("-")[2])))


def mirror_of(client: docker.DockerClient, layout: Layout) -> Container | None:
    """The lab's mirror, or None."""
    found = {_hostname(container): container for container in containers_of(client, layout)}
    return found.get(MIRROR_HOSTNAME)


def states_of(client: docker.DockerClient, layout: Layout) -> list[HostState]:
    """How the mirror and the hosts are."""
    return [
        HostState(_hostname(container), port_of(container), container.status)
        for container in containers_of(client, layout)
    ]


def mirror_recipe(mirror: Container) -> str | None:
    """What a mirror was made from."""
    recipe: str | None = mirror.labels.get(RECIPE_LABEL)
    return recipe


def port_of(container: Container) -> int:
    """The loopback port that it was made with."""
    return int(container.labels[PORT_LABEL])


def _hostname(container: Container) -> str:
    return str(container.attrs["Config"]["Hostname"])


def _labelled(client: docker.DockerClient, layout: Layout | None) -> list[Container]:
    label = LABEL if layout is None else f"{LABEL}={layout.name}"
    found: list[Container] = client.containers.list(all=True, filters={"label": label})
    return sorted(found, key=lambda container: str(container.name))


def _create(
    client: docker.DockerClient, layout: Layout, name: str, *, labels: Mapping[str, str], **settings: Any
) -> Container:
    created = client.api.create_container(name=name, labels={**layout.labels, **labels}, **settings)
    return client.containers.get(created["Id"])


def _endpoint(client: docker.DockerClient, layout: Layout, address: str, aliases: Sequence[str]) -> dict[str, Any]:
    endpoint = client.api.create_endpoint_config(ipv4_address=address, aliases=list(aliases))
    return {"EndpointsConfig": {layout.network: endpoint}}


def _put(container: Container, folder: str, files: Mapping[str, str], *, uid: int, mode: int) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.uid, entry.gid, entry.mode = len(text.encode()), uid, uid, mode
            archive.addfile(entry, io.BytesIO(text.encode()))
    container.put_archive(folder, buffer.getvalue())
