"""Which links are measured between whom, and when there is a reason to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from modules.fabric.addresses import TWINS, address_of, ends_of
from modules.fabric.ports import PlannedPort
from modules.spec.fabric import Fabric

FIRST_PORT = 18515
"""perftest's own; each link takes one more."""
# RoCE v2 over IPv4 on a Spark, where the kernel's table could not be read.
USUAL_GID = 3


@dataclass(frozen=True)
class MeasuredLink:
    """Half `twin` of a cable. `server` waits at `address`:`port` for `client`. `name`: for people."""

    name: str
    server: str
    client: str
    slot: int
    twin: int
    address: str
    port: int


def measured_links(fabric: Fabric, slots: int) -> list[MeasuredLink]:
    """Each half of each cable once; at a switch, of every member to the first one.

    `slots`: how many ports the first member uses, where cables are not written out.
    """
    cables = [[end.split("/")[0] for end in pair] for pair in ends_of(fabric)]
    if fabric.topology == "switch" or not cables:
        first, *others = fabric.members
        joined = [(slot, first, other) for other in others for slot in range(slots)]
    else:
        ordered = [sorted(pair, key=fabric.members.index) for pair in cables]
        joined = [(slot, server, client) for slot, (server, client) in enumerate(ordered)]
    links = [(slot, server, client, twin) for slot, server, client in joined for twin in range(TWINS)]
    return [
        MeasuredLink(
            name=f"{server} to {client}, cable {slot + 1}, half {twin + 1}",
            server=server,
            client=client,
            slot=slot,
            twin=twin,
            address=str(address_of(fabric, server, slot, twin).ip),
            port=FIRST_PORT + number,
        )
        for number, (slot, server, client, twin) in enumerate(links)
    ]


def part_of(ports: Sequence[PlannedPort], kernel: str) -> str:
    """What of one host's decides how fast its links are."""
    halves = [[port.name, str(port.address), port.mtu, port.port.firmware, port.port.speed_mbps] for port in ports]
    return json.dumps([kernel, halves])


def key_of(fabric: Fabric, parts: Mapping[str, str]) -> str:
    """What a measurement is remembered by: as long as it stays the same, there is no reason for another one."""
    wanted = [fabric.topology, fabric.gate.nccl, fabric.gate.nccl_bytes, sorted(parts.items())]
    return hashlib.sha256(json.dumps(wanted).encode()).hexdigest()[:16]


def device_of(link: MeasuredLink, ports: Sequence[PlannedPort]) -> tuple[str, int] | None:
    """A host's RDMA device for that link, and the index of its GID; None where it has none."""
    port = next((port for port in ports if (port.slot, port.twin) == (link.slot, link.twin)), None)
    if port is None or port.port.rdma is None:
        return None
    return port.port.rdma, (port.port.gids or {}).get(str(port.address.ip), USUAL_GID)
