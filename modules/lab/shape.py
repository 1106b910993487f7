"""Slow links: the kernel's token bucket on both ends of a container's cable."""

from __future__ import annotations

from typing import Any

import docker
from docker.errors import ContainerError
from docker.models.containers import Container

from modules.lab import daemon
from modules.lab.containers import MIRROR_HOSTNAME, hosts_of, mirror_of
from modules.lab.errors import LabError
from modules.lab.layout import Layout

_INNER = "eth0"


def shape(layout: Layout, host: str, mbit: float | None) -> None:
    """Give a host (or the mirror) a link of so many Mbit/s each way; None: as fast as this machine.

    Raises:
        LabError: there is no such host, or the kernel has no token buckets.

    """
    client = daemon.connect()
    containers = {} if client is None else {MIRROR_HOSTNAME: mirror_of(client, layout), **hosts_of(client, layout)}
    container = containers.get(host)
    if client is None or container is None or container.status != "running":
        raise LabError(f"lab {layout.name} has no running host {host!r}; it has: {', '.join(containers) or 'none'}")
    # The other end of the cable is one of this machine's interfaces; the kernel tells its number inside.
    inside = f"container:{container.id}"
    number = _run(client, container, inside, f"cat /sys/class/net/{_INNER}/iflink").strip()
    outer = f"$(ip -o link | sed -n 's/^{number}: \\([^@:]*\\).*/\\1/p')"
    _run(client, container, inside, command(_INNER, mbit))
    _run(client, container, "host", command(outer, mbit))


def command(link: str, mbit: float | None) -> str:
    """What a shell is told."""
    if mbit is None:
        return f"tc qdisc del dev {link} root 2>/dev/null || true"
    # A bucket of 10 ms, and a queue of 50 ms, as a cheap switch has it.
    burst = max(64 * 1024, int(mbit * 1_000_000 / 8 / 100))
    return f"tc qdisc replace dev {link} root tbf rate {mbit:g}mbit burst {burst} latency 50ms"


def _run(client: docker.DockerClient, container: Container, network: str, script: str) -> str:
    # A container of its own, since neither hosts nor this user need to have the right to do it.
    image: Any = container.image
    try:
        output: bytes = client.containers.run(
            image, ["sh", "-c", script], network_mode=network, cap_add=["NET_ADMIN"], remove=True
        )
    except ContainerError as error:
        raise LabError(f"{container.name}: {error}") from error
    return output.decode()
