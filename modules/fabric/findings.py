"""What is wrong with a host's fabric, cable by cable, with what to do. Pure: what was seen comes in."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from modules.fabric.addresses import TWINS, address_of, own_links
from modules.fabric.kernel import ARGUMENT, needs_argument
from modules.fabric.ports import PlannedPort
from modules.spec.fabric import Fabric

SMALL = 84
"""Bytes of a packet that passes whatever the MTU is: it tells a wrong MTU from a dead cable."""
# Each half of a port has four lanes of PCIe 5: eugr/spark-vllm-docker, docs/NETWORKING.md.
_PCIE_GTS, _PCIE_WIDTH = 32.0, 4
_LINK_MBPS = 200_000
_AC = "shut the host down, take it off the mains for a minute, and start it again; update the firmware by fwupdmgr"

Tries = Mapping[tuple[str, str, int], str]
"""(address from, address to, bytes) → empty where the packet came back, else what was seen."""


def possible_pings(fabric: Fabric, member: str) -> list[tuple[str, str, int]]:
    """What is to be tried: from each address that the member may have, a small packet and one as large as the MTU.

    Whichever ports have the cables: addresses do not hang on that; from one that is nowhere nothing is tried.
    """
    return [
        (str(address_of(fabric, member, link.slot, twin).ip), str(address_of(fabric, peer, link.slot, twin).ip), size)
        for link in own_links(fabric, member)
        for twin in range(TWINS)
        for peer in link.peers
        for size in (SMALL, fabric.mtu)
    ]


def without_peers(ports: Sequence[PlannedPort], names: Collection[str]) -> tuple[PlannedPort, ...]:
    """The ports without these neighbours; one that has no other is left out."""
    kept = [(port, {peer: to for peer, to in port.peers.items() if peer not in names}) for port in ports]
    return tuple(replace(port, peers=peers) for port, peers in kept if peers)


def cable_faults(ports: Sequence[PlannedPort], tries: Tries) -> Iterator[str]:
    """Every half of a port that does not carry packets of the wanted size to its peers."""
    for port in ports:
        toward = ", ".join(port.peers)
        cable = f"port {port.port.place} ({port.name}, half {port.twin + 1} of 2) to {toward}"
        if port.port.carrier is None:
            yield f"{cable}: the interface is down, `sudo ip link set {port.name} up` and look at `journalctl -k`"
        elif not port.port.carrier:
            yield (
                f"{cable}: no carrier; plug the cable in at both ends, and see that the other host runs; where it went"
                " into another port, write fabric.cables"
            )
        elif str(port.address) not in port.port.addresses:
            yield f"{cable}: it has not got {port.address}; see `networkctl status {port.name}` or `nmcli device`"
        elif port.port.mtu != port.mtu:
            yield f"{cable}: its MTU is {port.port.mtu}, wanted {port.mtu}; see which program sets it, and run again"
        else:
            yield from _silent(port, cable, tries)


def _silent(port: PlannedPort, cable: str, tries: Tries) -> Iterator[str]:
    source = str(port.address.ip)
    for peer, address in port.peers.items():
        small, whole = (tries.get((source, address, size), "was not tried") for size in (SMALL, port.mtu))
        where = cable if len(port.peers) == 1 else f"{cable}: {peer}"
        if small:
            yield (
                f"{where}: {address} ({peer}) does not answer ({small}); see that {peer} is set up by the same fleet"
                " file, and that the cable is in the ports that fabric.cables says"
            )
        elif whole:
            yield (
                f"{where}: packets of {port.mtu} bytes do not pass to {address} ({whole}), small ones do; set MTU"
                f" {port.mtu} on {peer}'s port and on every switch between, or fabric.mtu: 1500 (slower)"
            )


def port_warnings(ports: Sequence[PlannedPort]) -> Iterator[str]:
    """Known bad states of ports that carry packets all the same, and are slow."""
    for each in ports:
        port, name = each.port, f"port {each.port.place} ({each.port.name})"
        if port.carrier and port.speed_mbps is not None and port.speed_mbps < _LINK_MBPS:
            speed = port.speed_mbps // 1000
            yield f"{name}: the link runs at {speed} Gb/s, wanted {_LINK_MBPS // 1000}; try another cable"
        if port.pcie_gts is not None and port.pcie_gts < _PCIE_GTS:
            yield f"{name}: its PCIe link runs at {port.pcie_gts:g} GT/s, wanted {_PCIE_GTS:g}; {_AC}"
        if port.pcie_width is not None and port.pcie_width < _PCIE_WIDTH:
            yield f"{name}: its PCIe link has {port.pcie_width} lanes, wanted {_PCIE_WIDTH}; {_AC}"
        if port.rdma is None:
            yield f"{name}: it has no RDMA device, so NCCL falls back to sockets; `sudo modprobe mlx5_ib`"
        elif port.carrier and port.rdma_state not in {None, "ACTIVE"}:
            yield f"{name}: RDMA device {port.rdma} is {port.rdma_state}, wanted ACTIVE; see `rdma link`"
        elif str(each.address) in port.addresses and port.gids is not None and str(each.address.ip) not in port.gids:
            yield f"{name}: {port.rdma} has no RoCE v2 GID for {each.address.ip}; see `show_gids`, and restart the host"


def kernel_warning(kernel: str, arguments: Collection[str]) -> str | None:
    """What the running kernel does to RDMA."""
    if not needs_argument(kernel) or ARGUMENT in arguments:
        return None
    return (
        f"kernel {kernel} runs without {ARGUMENT}, so RDMA can not register memory (ibv_reg_mr: Cannot allocate"
        " memory); it is set for the next boot: `sudo reboot` when it suits"
    )


def firmware_warning(versions: Mapping[str, str | None]) -> str | None:
    """Members whose ConnectX-7 run different firmware. `versions`: host → version, of those that have been seen."""
    known = {host: version for host, version in versions.items() if version is not None}
    if len(set(known.values())) < 2:
        return None
    told = ", ".join(f"{host}: {version}" for host, version in sorted(known.items()))
    return f"the ConnectX-7 run different firmware ({told}); bring them to one by `sudo fwupdmgr update`"
