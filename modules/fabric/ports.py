"""Which of a host's QSFP ports takes which cable, and what each half of it is to be."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from modules.fabric.addresses import TWINS, Link, address_of, own_links
from modules.spec.fabric import Fabric


class PortsError(Exception):
    """The host's ports are not those that its cables need: what is wrong, and what to do about it."""


@dataclass(frozen=True)
class Port:
    """One half of a QSFP port, as the host has it.

    `place`: f0 or f1. `pci`: as `0000:01:00.0`; the halves of one port differ in its domain. `carrier`: a cable with
    somebody at its other end; None: the interface is down, so nobody can tell. `speed_mbps`: of the link. `rdma`: its
    RDMA device. `gids`: IPv4 address → index of its RoCE v2 GID; None: the kernel shows no
    table of them. `pcie_gts`, `pcie_width`: of its PCIe link.
    """

    name: str
    pci: str
    place: str
    mac: str
    carrier: bool | None
    mtu: int
    addresses: tuple[str, ...] = ()
    speed_mbps: int | None = None
    rdma: str | None = None
    rdma_state: str | None = None
    firmware: str | None = None
    gids: dict[str, int] | None = None
    pcie_gts: float | None = None
    pcie_width: int | None = None


@dataclass(frozen=True)
class PlannedPort:
    """One half of a port with what it is to have. `peers`: member → its address at the other end of this half."""

    port: Port
    slot: int
    twin: int
    address: ipaddress.IPv4Interface
    mtu: int
    peers: dict[str, str]

    @property
    def name(self) -> str:
        """Of its network interface."""
        return self.port.name


def by_place(ports: Iterable[Port]) -> dict[str, tuple[Port, ...]]:
    """f0, f1 → the halves of that port, in the order of their PCI addresses."""
    found: dict[str, tuple[Port, ...]] = {}
    for port in sorted(ports, key=lambda port: port.pci):
        found[port.place] = (*found.get(port.place, ()), port)
    return found


def planned_ports(
    fabric: Fabric, host: str, ports: Sequence[Port], configured: Collection[str] = ()
) -> tuple[PlannedPort, ...]:
    """What each half of each used port is to be, by slot and half.

    `configured`: interfaces that our own file names already. Where no cable is written out, a port of these stays one
    of the fabric's without a carrier, too: a pulled cable, or a neighbour that is off, is told of and not dropped.

    Raises `PortsError`: the host has not the ports that its cables need.
    """
    places = by_place(ports)
    if not places:
        raise PortsError(
            "no ConnectX-7 port was found (driver mlx5_core): look for it with `lspci -d 15b3:`; after an update of its"
            " firmware, or where it is not listed, take the host off the mains for a minute"
        )
    links = own_links(fabric, host)
    chosen = [(link, link.port) for link in links if link.port is not None] or _with_carrier(links, places, configured)
    planned: list[PlannedPort] = []
    for link, place in chosen:
        halves = places.get(place or "", ())
        if len(halves) != TWINS:
            raise PortsError(_half_missing(place or "", halves))
        planned += [_planned(fabric, host, link, twin, half) for twin, half in enumerate(halves)]
    return tuple(planned)


def _with_carrier(
    links: Sequence[Link], places: dict[str, tuple[Port, ...]], configured: Collection[str]
) -> list[tuple[Link, str]]:
    found = [
        place
        for place, halves in sorted(places.items())
        if any(half.carrier or half.name in configured for half in halves)
    ]
    if found:
        return list(zip(links, found, strict=False))
    down = [half.name for halves in places.values() for half in halves if half.carrier is None]
    if down:
        commands = "; ".join(f"sudo ip link set {name} up" for name in down)
        raise PortsError(
            f"no port has a carrier, and {', '.join(down)} are down, so it can not be seen which has a cable: write"
            f" fabric.cables (fabric.ports at a switch), or run `{commands}`"
        )
    names = ", ".join(half.name for halves in places.values() for half in halves)
    raise PortsError(f"no port has a carrier ({names}): plug the cable in at both ends, and start the other host")


def _half_missing(place: str, halves: Sequence[Port]) -> str:
    if not halves:
        return f"this host has no port {place}: correct the port in fabric.cables or fabric.ports"
    return (
        f"only one half of port {place} is there ({', '.join(half.name for half in halves)}), and each port has two:"
        " the other PCIe link is missing; shut the host down, take it off the mains for a minute, and start it again"
    )


def _planned(fabric: Fabric, host: str, link: Link, twin: int, half: Port) -> PlannedPort:
    peers = {peer: str(address_of(fabric, peer, link.slot, twin).ip) for peer in link.peers}
    return PlannedPort(half, link.slot, twin, address_of(fabric, host, link.slot, twin), fabric.mtu, peers)
