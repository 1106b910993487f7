"""The network between Sparks over their QSFP ports, as a fleet file wishes it."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, field_validator, model_validator

from modules.spec.base import HostName, Ipv4Network, Strict, broken_rule

Topology = Literal["direct", "ring", "mesh", "switch"]
PortName = Literal["f0", "f1"]
CableEnd = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9.-]*/f[01]$")]
# NCCL tests of 16 GB froze nodes: NVIDIA/dgx-spark-playbooks issue 102. All ranks' buffers are in the one memory.
LARGEST_BUFFER = 1 << 30
# Of no one host either, but not called private (RFC 6598); docker's own default, docs.docker.com/engine/network.
_SHARED = ipaddress.IPv4Network("100.64.0.0/10")
_DOCKER = ipaddress.IPv4Network("172.17.0.0/16")
_NOT_OF_HOSTS = ("is_loopback", "is_multicast", "is_link_local", "is_unspecified", "is_reserved")


class FabricGate(Strict):
    """The measurement of the links by `deploys/fabric_gate.py`.

    `nccl_bytes`: the largest message of the NCCL test, 1 GiB at most. `rdma_min_gbps`, `nccl_min_gbs`: least bandwidth
    of one twin in Gb/s and of the NCCL test in GB/s; without them, the catalog's for the topology. `nccl`: whether
    NCCL is measured beside RDMA.
    """

    nccl: bool = True
    nccl_bytes: int = Field(default=64 << 20, ge=1 << 10, le=LARGEST_BUFFER)
    rdma_min_gbps: float | None = Field(default=None, gt=0)
    nccl_min_gbs: float | None = Field(default=None, gt=0)


class Fabric(Strict):
    """How Sparks are cabled to each other, the same for every member.

    `members`: hosts of the fleet, in the order that decides their addresses. `network`: what is divided among the
    cables and the two halves of each port. `cables`: pairs of `host/port`; without them those that have a carrier
    (`direct`), or f0 of each host to f1 of the next (`ring`). `ports`: this host's ports at a switch; without them
    those that have a carrier. `adopt`: replace what others have configured on these ports.
    """

    topology: Topology
    members: tuple[HostName, ...]
    network: Ipv4Network = "192.168.100.0/22"
    mtu: int = Field(default=9000, ge=1280, le=9216)
    cables: tuple[tuple[CableEnd, CableEnd], ...] = ()
    ports: tuple[PortName, ...] = ()
    adopt: bool = False
    gate: FabricGate = FabricGate()

    @field_validator("network")
    @classmethod
    def _of_hosts(cls, value: str) -> str:
        network = ipaddress.IPv4Network(value)
        if any(getattr(network, kind) for kind in _NOT_OF_HOSTS):
            raise ValueError(f"{value} can not be given to hosts: write a private network, as 192.168.100.0/22")
        if not network.is_private and not network.subnet_of(_SHARED):
            raise ValueError(
                f"{value} holds addresses of the internet, which would be out of reach from these hosts: write a "
                "private network, as 192.168.100.0/22"
            )
        if network.overlaps(_DOCKER):
            raise ValueError(
                f"{value} overlaps {_DOCKER}, which docker gives to containers on every host: write another network, "
                "as 192.168.100.0/22"
            )
        return value

    @field_validator("members")
    @classmethod
    def _differ(cls, members: tuple[str, ...]) -> tuple[str, ...]:
        twice = next((name for name in members if members.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"{twice} stands here twice: name each member once")
        return members

    @model_validator(mode="after")
    def _counted(self) -> Fabric:
        wanted = {"direct": 2, "ring": 3, "mesh": 3}.get(self.topology)
        count = len(self.members)
        if wanted is not None and count != wanted:
            message = f"topology {self.topology} joins {wanted} hosts, and {count} are named"
            raise broken_rule(f"{message}: name {wanted}, or use another topology", "members")
        if count < 2:
            raise broken_rule("a switch joins at least 2 hosts: name them in members", "members")
        return self

    @model_validator(mode="after")
    def _cabled(self) -> Fabric:
        fault = self._cable_fault()
        if fault is not None:
            raise broken_rule(*fault)
        return self

    def _cable_fault(self) -> tuple[str, str] | None:
        if self.ports and self.topology != "switch":
            return "only a switch takes ports: write cables for other topologies", "ports"
        if len(set(self.ports)) != len(self.ports):
            return "a port stands here twice: name each port once", "ports"
        if self.topology == "switch":
            return ("a switch takes no cables: write ports", "cables") if self.cables else None
        ends = [end for cable in self.cables for end in cable]
        for end in ends:
            host = end.partition("/")[0]
            if host not in self.members:
                return f"{end} is of no member: use {', '.join(self.members)}", "cables"
            if ends.count(end) > 1:
                return f"{end} is the end of two cables: a port takes one", "cables"
        return self._count_fault()

    def _count_fault(self) -> tuple[str, str] | None:
        pairs = [frozenset(end.partition("/")[0] for end in cable) for cable in self.cables]
        if any(len(pair) == 1 for pair in pairs):
            return "a cable joins a host with itself: each has two ends on two hosts", "cables"
        if self.topology == "direct":
            return None if len(pairs) <= 2 else ("a pair has two ports each: write two cables at most", "cables")
        if not pairs:
            return (
                None if self.topology == "ring" else ("a mesh needs its cables written out: one for each two", "cables")
            )
        if len(pairs) != 3 or len(set(pairs)) != 3:
            return f"a {self.topology} of three has three cables, one for each two hosts: write those", "cables"
        return None

    @model_validator(mode="after")
    def _large_enough(self) -> Fabric:
        network = ipaddress.IPv4Network(self.network)
        if subnet_prefix(network, self.topology) is None or len(self.members) > hosts_in(network, self.topology):
            count = subnets_of(self.topology)
            message = f"{self.network} is too small for {count} networks of {len(self.members)} hosts each"
            raise broken_rule(f"{message}: write a larger one, as 192.168.100.0/22", "network")
        return self


def subnets_of(topology: Topology) -> int:
    """Into how many networks a fabric's is divided: two for each port's halves, or for each cable of a ring."""
    return 8 if topology in {"ring", "mesh"} else 4


def subnet_prefix(network: ipaddress.IPv4Network, topology: Topology) -> int | None:
    """The length of each part's prefix, 24 at least; None where not even two hosts fit into one."""
    prefix = max(24, network.prefixlen + subnets_of(topology).bit_length() - 1)
    return prefix if prefix <= 30 else None


def hosts_in(network: ipaddress.IPv4Network, topology: Topology) -> int:
    """How many hosts fit into each part."""
    prefix = subnet_prefix(network, topology)
    return 0 if prefix is None else 2 ** (32 - prefix) - 2
