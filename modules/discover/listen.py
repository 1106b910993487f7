"""Questions to everybody on a wire, and what comes back: multicast DNS, and an echo request to all IPv6 nodes."""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress

from modules.discover.announced import ASKED, SERVICES, further_types, reverse
from modules.discover.dns import PTR, Record, question, records
from modules.discover.links import Link, Neighbour

_GROUP, _GROUP6, _PORT = "224.0.0.251", "ff02::fb", 5353
_ALL_NODES = "ff02::1"
_ECHO_REQUEST, _ECHO_REPLY = 128, 129
_LONGEST = 9000
Heard = list[tuple[str, Record]]


def listen(links: Sequence[Link], addresses: Iterable[str], seconds: float) -> Heard:
    """Ask by multicast DNS who is there, and for the names of these addresses. Returns sender → record.

    Asked from a port of its own, to which answers come directly, and from that of multicast DNS, to which they come
    through firewalls that let only the group's through.
    """
    first = [*((f"{kind}.local", PTR) for kind in ASKED), (SERVICES, PTR)]
    second = [(reverse(address), PTR) for address in addresses if "%" not in address]
    with ExitStack() as stack:
        doors = [door for link in links for door in _doors(link, stack)]
        heard = _round(doors, first, seconds)
        further = [(f"{kind}.local", PTR) for kind in further_types(one for _, one in heard)]
        if further or second:
            heard += _round(doors, [*further, *second], seconds / 2)
    return heard


Door = tuple[socket.socket, tuple[str, int] | tuple[str, int, int, int], bool]
"""A socket, whom it asks, and whether answers are asked for directly."""


def _doors(link: Link, stack: ExitStack) -> list[Door]:
    doors: list[Door] = []
    for address in link.ipv4:
        for port in (0, _PORT):
            with suppress(OSError):
                door = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
                door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                door.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
                door.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 255)
                if port:
                    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                    group = socket.inet_aton(_GROUP) + socket.inet_aton(address)
                    door.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group)
                door.bind(("" if port else address, port))
                doors.append((door, (_GROUP, _PORT), not port))
    if link.ipv6:
        with suppress(OSError):
            door = stack.enter_context(socket.socket(socket.AF_INET6, socket.SOCK_DGRAM))
            door.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, link.index)
            door.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
            doors.append((door, (_GROUP6, _PORT, 0, link.index), True))
    return doors


def _round(doors: Sequence[Door], names: Sequence[tuple[str, int]], seconds: float) -> Heard:
    """Ask twice, since such questions get lost, and take in what comes meanwhile."""
    heard: Heard = []
    started = time.monotonic()
    for part in (0.4, 1.0):
        for door, target, unicast in doors:
            with suppress(OSError):
                door.sendto(question(names, unicast=unicast), target)
        while (left := started + seconds * part - time.monotonic()) > 0:
            ready, _, _ = select.select([door for door, _, _ in doors], [], [], left)
            for door in ready:
                heard += _received(door)
    return heard


def _received(door: socket.socket) -> Heard:
    try:
        message, sender = door.recvfrom(_LONGEST)
        return [(_address(sender), one) for one in records(message)]
    except OSError:
        return []


def everybody(links: Sequence[Link], seconds: float) -> list[Neighbour]:
    """Who answers an echo request to all IPv6 nodes of each link: also those that were given no address at all.

    Nobody, where this machine lets its users send none.
    """
    found: dict[str, Neighbour] = {}
    with ExitStack() as stack:
        doors: list[tuple[socket.socket, Link]] = []
        for link in links:
            if link.ipv6:
                with suppress(OSError):
                    door = stack.enter_context(_echo_socket())
                    door.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 0)
                    echo = struct.pack("!BBHHH", _ECHO_REQUEST, 0, 0, 0, 1) + b"tinderbox"
                    for _ in range(2):
                        door.sendto(echo, (_ALL_NODES, 0, 0, link.index))
                    doors.append((door, link))
        until = time.monotonic() + seconds
        while doors and (left := until - time.monotonic()) > 0:
            ready, _, _ = select.select([door for door, _ in doors], [], [], left)
            for door, link in doors:
                if door in ready:
                    with suppress(OSError):
                        reply, sender = door.recvfrom(_LONGEST)
                        if reply[:1] == bytes([_ECHO_REPLY]):
                            address = _address(sender)
                            found.setdefault(address, Neighbour(address, link.name))
    return list(found.values())


def _echo_socket() -> socket.socket:
    """The kind that any user may have where the machine allows it (`net.ipv4.ping_group_range`); else root's."""
    try:
        return socket.socket(socket.AF_INET6, socket.SOCK_DGRAM, socket.IPPROTO_ICMPV6)
    except PermissionError:
        return socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)


def _address(sender: tuple[object, ...]) -> str:
    address = str(sender[0])
    if "%" not in address and address.startswith("fe80") and len(sender) == 4 and sender[3]:
        return f"{address}%{socket.if_indextoname(int(str(sender[3])))}"
    return address
