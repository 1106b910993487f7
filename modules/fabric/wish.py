"""What a host is to have for its fabric, and whether what it has stands in the way."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from modules.fabric.environment import ENVIRONMENT
from modules.fabric.kernel import GRUB
from modules.fabric.netplan import MARK, NETPLAN
from modules.fabric.ports import PlannedPort
from modules.spec.fabric import Fabric

LIMITS = "/etc/security/limits.d/90-tinderbox-fabric.conf"
# RDMA registers the memory that it sends from, which must stay where it is.
LIMITS_TEXT = "# By Tinderbox, fabric of the fleet file.\n* - memlock unlimited\nroot - memlock unlimited\n"
FILES = (ENVIRONMENT, LIMITS, GRUB)
"""Beside netplan's."""


@dataclass(frozen=True)
class Configured:
    """A file that is not ours and configures ports. `alone`: it configures nothing else."""

    file: str
    ports: tuple[str, ...]
    alone: bool


def in_the_way(
    fabric: Fabric, ports: Sequence[PlannedPort], files: Sequence[Configured], ours: str | None
) -> Iterator[str]:
    """Why these ports are not touched: somebody else has configured them. `ours`: our file's text, if it is there."""
    for file in files:
        theirs = [port.name for port in ports if port.name in file.ports]
        if file.file != NETPLAN and not theirs:
            continue
        what = f"{file.file} is not Tinderbox's and configures {', '.join(theirs) or 'nothing of this'}"
        if file.file == NETPLAN or file.alone:
            if not fabric.adopt:
                yield f"{what}; remove it (`sudo rm {file.file}`), or have it replaced and kept: fabric.adopt: true"
        else:
            yield f"{what}, and other interfaces beside; take these ports out of it by hand, then run again"
    if fabric.adopt or any(file.ports for file in files):
        return
    given = {*_addresses_in(ours), *(str(port.address) for port in ports)}
    for port in ports:
        strange = [address for address in port.port.addresses if address not in given]
        if strange:
            yield (
                f"{port.name} has {', '.join(strange)}, which no file gives it; take it away (`sudo ip addr flush dev"
                f" {port.name}`), or set fabric.adopt: true"
            )


def moved(ports: Sequence[PlannedPort], files: Sequence[Configured]) -> list[str]:
    """Files of others that have to be away while ours is there."""
    names = {port.name for port in ports}
    return [file.file for file in files if file.file != NETPLAN and file.alone and names & set(file.ports)]


def configured(text: str | None) -> Collection[str]:
    """The interfaces that our own file names; nothing of another's."""
    return re.findall(r"(?m)^    ([\w.-]+):$", text) if text is not None and text.startswith(MARK) else ()


def _addresses_in(text: str | None) -> Collection[str]:
    """What our own file gives."""
    return re.findall(r"addresses: \[([\d./]+)\]", text) if text is not None and text.startswith(MARK) else ()


def taken_addresses(fabric: Fabric, others: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Interfaces beside the fabric's that have an address in its network."""
    network = ipaddress.IPv4Network(fabric.network)
    for name, addresses in others.items():
        for address in addresses:
            if ipaddress.IPv4Interface(address).network.overlaps(network):
                yield (
                    f"{name} has {address}, which overlaps fabric.network {fabric.network}; choose another network, as"
                    " 10.100.0.0/22"
                )


def ways_out(ports: Sequence[PlannedPort], routed: Collection[str]) -> Iterator[str]:
    """Ports by which the host reaches everybody else; also with `adopt`, since the fabric's have no way out."""
    for port in ports:
        if port.name in routed:
            yield (
                f"{port.name} has the host's default route, and the fabric would take it away; give the host another"
                " way to the outside first, or have another port in the fabric (fabric.cables, fabric.ports)"
            )


def is_given(port: PlannedPort) -> bool:
    """Whether the port has its address and MTU, as far as it can have them: without a carrier it gets none."""
    if port.port.carrier is False:
        return True
    return port.port.carrier is True and str(port.address) in port.port.addresses and port.port.mtu == port.mtu
