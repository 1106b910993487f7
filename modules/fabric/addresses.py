"""Which address each half of each port has: by the fleet file alone, so every host knows every other's."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from modules.spec.fabric import Fabric, PortName, subnet_prefix

TWINS = 2
"""A QSFP port shows twice, once for each PCIe link that it has."""


@dataclass(frozen=True)
class Link:
    """A cable as one of its hosts sees it.

    `slot`: its number, which decides its networks. `port`: None for whichever of the host's ports has a carrier.
    `peers`: who is at its other end, every other member at a switch.
    """

    slot: int
    port: PortName | None
    peers: tuple[str, ...]


def ends_of(fabric: Fabric) -> tuple[tuple[str, str], ...]:
    """Every cable whose ends are known, each as `host/port`; f0 of each to f1 of the next in a ring."""
    if fabric.topology == "ring" and not fabric.cables:
        following = (*fabric.members[1:], fabric.members[0])
        return tuple((f"{one}/f0", f"{other}/f1") for one, other in zip(fabric.members, following, strict=True))
    return fabric.cables


def own_links(fabric: Fabric, host: str) -> tuple[Link, ...]:
    """The cables of a member, by their slots; for a pair or a switch without ports named, as many as it may have."""
    others = tuple(name for name in fabric.members if name != host)
    if fabric.topology == "switch":
        return tuple(Link(slot, port, others) for slot, port in enumerate(sorted(fabric.ports) or (None, None)))
    ends = ends_of(fabric)
    if not ends:
        return tuple(Link(slot, None, others) for slot in range(2))
    return tuple(_written(host, ends))


def _written(host: str, cables: tuple[tuple[str, str], ...]) -> Iterator[Link]:
    for slot, cable in enumerate(cables):
        names = dict(end.split("/") for end in cable)
        if host in names:
            peers = tuple(name for name in names if name != host)
            yield Link(slot, cast("PortName", names[host]), peers)


def address_of(fabric: Fabric, host: str, slot: int, twin: int) -> ipaddress.IPv4Interface:
    """The address of a member's half `twin` (0 or 1) of the port that cable `slot` is in.

    The last part of an address is the member's place in `members`, so it is the same in all of its networks.
    """
    network = ipaddress.IPv4Network(fabric.network)
    prefix = subnet_prefix(network, fabric.topology)
    assert prefix is not None, "a network that is too small was refused"
    subnet = int(network.network_address) + ((slot * TWINS + twin) << (32 - prefix))
    return ipaddress.IPv4Interface((subnet + 1 + fabric.members.index(host), prefix))


def address_for(fabric: Fabric, host: str, peer: str) -> str:
    """The address at which `peer` reaches `host` over the fabric: that of the first half of the first cable between.

    Raises `KeyError`: one of the two is no member, or no cable joins them.
    """
    if host not in fabric.members or peer not in fabric.members or host == peer:
        raise KeyError(f"{host} and {peer} are not two members of this fabric")
    slot = next((link.slot for link in own_links(fabric, host) if peer in link.peers), None)
    if slot is None:
        raise KeyError(f"no cable joins {host} and {peer}")
    return str(address_of(fabric, host, slot, 0).ip)


def rendezvous_address(fabric: Fabric, head: str) -> str | None:
    """The one address at which every other member reaches `head`: where an engine's head waits for its workers.

    None in a ring or a mesh, where each neighbour has another cable and so another network: take the host's address
    on the management network there (`network.peer_address`, else where the controller reaches it).
    """
    if fabric.topology in {"ring", "mesh"}:
        return None
    return str(address_of(fabric, head, 0, 0).ip)
