"""QSFP cables between lab hosts: each half of a port is a real network interface, the card behind it is simulated.

A host gets the four interfaces of a real Spark, by their names, and below `SYSFS` a stand-in for what the kernel tells
of their devices. It says of itself that it is simulated: there is no such card, and no RDMA.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator, Sequence
from typing import Any

import docker
from docker.errors import ContainerError
from docker.models.containers import Container

from modules.lab import daemon
from modules.lab.containers import hosts_of
from modules.lab.errors import LabError
from modules.lab.layout import Layout

SYSFS = "/etc/tinderbox-lab/sys"
# Port → its halves, as (interface, PCI address, RDMA device).
PORTS = {
    "f0": (("enp1s0f0np0", "0000:01:00.0", "rocep1s0f0"), ("enP2p1s0f0np0", "0002:01:00.0", "roceP2p1s0f0")),
    "f1": (("enp1s0f1np1", "0000:01:00.1", "rocep1s0f1"), ("enP2p1s0f1np1", "0002:01:00.1", "roceP2p1s0f1")),
}
FIRMWARE = "28.45.4028"
End = tuple[str, str]
"""Host and port."""


def cable(layout: Layout, cables: Sequence[tuple[End, End]]) -> None:
    """Have exactly these cables between the hosts that they name; their other ports have none.

    Raises:
        LabError: there is no such host or port.

    """
    client = daemon.connect()
    hosts = {} if client is None else hosts_of(client, layout)
    ends = [end for pair in cables for end in pair]
    for host, port in ends:
        if port not in PORTS or host not in hosts or hosts[host].status != "running":
            raise LabError(f"lab {layout.name} has no running host {host!r} with a port {port!r}")
    if client is None:
        return
    pids = {host: _pid(hosts[host]) for host, _ in ends}
    _run(client, hosts[ends[0][0]], "\n".join(commands(cables, pids)))
    for host in pids:
        hosts[host].put_archive("/", _archive(sysfs_files()))


def commands(cables: Sequence[tuple[End, End]], pids: dict[str, int]) -> Iterator[str]:
    """What a shell is told. `pids`: host → a process in its network."""
    yield "set -e"
    for pid in pids.values():
        for halves in PORTS.values():
            for name, _, _ in halves:
                yield f"{_in(pid)} ip link del {name} 2>/dev/null || true"
    for (host, port), (other, place) in cables:
        for (one, _, _), (two, _, _) in zip(PORTS[port], PORTS[place], strict=True):
            yield f"ip link add {one} netns {pids[host]} type veth peer name {two} netns {pids[other]}"
    taken = {end for pair in cables for end in pair}
    for host, pid in pids.items():
        for port, halves in PORTS.items():
            for number, (name, _, _) in enumerate(halves):
                if (host, port) not in taken:  # its other end stays down, so it has no carrier
                    yield f"{_in(pid)} ip link add {name} type veth peer name lab-{port}-{number}"
                yield f"{_in(pid)} ip link set {name} up"


def _in(pid: int) -> str:
    return f"nsenter --target {pid} --net"


def sysfs_files() -> dict[str, str]:
    """Path below `SYSFS` → text, or the target of a link after `-> `."""
    files = {"README": "Simulated by Tinderbox's lab: there is no ConnectX-7 on this host.\n"}
    for halves in PORTS.values():
        for name, pci, rdma in halves:
            device = f"devices/{pci}"
            files |= {
                f"class/net/{name}/device": f"-> ../../../{device}",
                f"class/net/{name}/speed": "200000\n",
                f"{device}/driver": "-> ../../bus/pci/drivers/mlx5_core",
                f"{device}/current_link_speed": "32.0 GT/s PCIe\n",
                f"{device}/current_link_width": "4\n",
                f"{device}/infiniband/{rdma}/simulated": "yes\n",
                f"class/infiniband/{rdma}/fw_ver": f"{FIRMWARE}\n",
                f"class/infiniband/{rdma}/board_id": "LAB0000000001 (simulated)\n",
                f"class/infiniband/{rdma}/ports/1/state": "4: ACTIVE\n",
                f"class/infiniband/{rdma}/ports/1/rate": "200 Gb/sec (2X NDR)\n",
            }
    return files | {"bus/pci/drivers/mlx5_core/simulated": "yes\n"}


def _archive(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"{SYSFS.lstrip('/')}/{name}")
            entry.mode = 0o644
            if text.startswith("-> "):
                entry.type, entry.linkname = tarfile.SYMTYPE, text.removeprefix("-> ")
                tar.addfile(entry)
            else:
                entry.size = len(text)
                tar.addfile(entry, io.BytesIO(text.encode()))
    return buffer.getvalue()


def _pid(container: Container) -> int:
    container.reload()
    return int(container.attrs["State"]["Pid"])


def _run(client: docker.DockerClient, container: Container, script: str) -> None:
    # A container of its own, since this user need not have the right to do it.
    image: Any = container.image
    try:
        client.containers.run(
            image,
            ["sh", "-c", script],
            network_mode="host",
            pid_mode="host",
            remove=True,
            cap_add=["NET_ADMIN", "SYS_ADMIN", "SYS_PTRACE"],
            security_opt=["seccomp=unconfined", "apparmor=unconfined"],
        )
    except ContainerError as error:
        raise LabError(f"the cables could not be laid: {error}") from error
