"""What a run knows of the members of a fabric whose links it measures, and so what is to be measured of which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from modules.catalog import load_catalog
from modules.fabric import PlannedPort, address_for, engine_environment
from modules.fabric.measuring import MeasuredLink, device_of, key_of, measured_links
from modules.fabric.verdict import Grade, judge_nccl, judge_rdma
from modules.facts.fabric_measured import PROGRAMS, Measured
from modules.spec.fabric import Fabric

NCCL_PROGRAMS = frozenset(PROGRAMS[1:])


@dataclass(frozen=True)
class Member:
    """What this run knows of a member: it was asked, and its cables answer."""

    part: str
    ports: tuple[PlannedPort, ...]
    management: str | None
    measured: Measured


members: dict[str, Member] = {}


def links_of(fabric: Fabric) -> list[MeasuredLink]:
    """Every link of the fabric, by what its first member has."""
    first = members[fabric.members[0]]
    return measured_links(fabric, len({port.slot for port in first.ports}))


def key_for(fabric: Fabric) -> str:
    """What tells measurements of things as they are now from all others."""
    return key_of(fabric, {name: members[name].part for name in fabric.members})


def absent(fabric: Fabric) -> list[str]:
    """Members that this run has not looked at."""
    return [name for name in fabric.members if name not in members]


def needed(fabric: Fabric) -> list[MeasuredLink]:
    """The links that were not measured as things are now, and those that were too slow: it may have been put right."""
    key = key_for(fabric)
    return [link for link in links_of(fabric) if not _is_good(fabric, key, link)]


def _is_good(fabric: Fabric, key: str, link: MeasuredLink) -> bool:
    measured = members[link.client].measured
    if not measured.has(key, link.name):
        return False
    lines = judge_rdma(fabric, load_catalog().fabrics[fabric.topology], {link.name: measured.rdma[link.name]})
    return all(line.grade is not Grade.FAIL for line in lines)


def needs_nccl(fabric: Fabric, measured: Measured) -> bool:
    """Whether NCCL is to be measured."""
    if not measured.has_nccl(key_for(fabric)):
        return measured.programs >= NCCL_PROGRAMS
    lines = judge_nccl(fabric, load_catalog().fabrics[fabric.topology], measured.nccl or "")
    return any(line.grade is Grade.FAIL for line in lines)


def wish_of(fabric: Fabric, member: str, links: Sequence[MeasuredLink]) -> dict[str, object]:
    """What the host's program is told of these links, as one of its ends."""
    ours, others = members[member], [name for name in fabric.members if name != member]
    devices = {link.name: device_of(link, ours.ports) for link in links}
    return {
        "key": key_for(fabric),
        "links": [
            {"name": link.name, "device": device[0], "gid": device[1], "port": link.port, "address": link.address}
            for link in links
            if (device := devices[link.name]) is not None
        ],
        "bytes": fabric.gate.nccl_bytes,
        "addresses": [str(ours.ports[0].address.ip), *(address_for(fabric, other, member) for other in others)],
        "environment": {
            name: value
            for name, value in engine_environment(fabric, ours.ports, ours.management).items()
            if name.startswith(("NCCL_", "OMPI_")) and "IFNAME" not in name and name != "NCCL_IB_HCA"
        },
    }
