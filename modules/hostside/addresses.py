"""The host's own IPv4 addresses, as other hosts may see them."""

from __future__ import annotations

import array
import fcntl
import socket
import struct

_SIOCGIFCONF = 0x8912
# struct ifreq on 64 bits: a name of 16 bytes, then family and port, then the address.
_ENTRY, _NAME, _ADDRESS = 40, 16, slice(20, 24)
_ROOM = 256 * _ENTRY
# What containers are attached to: the same on every host, and of no use to others.
_INNER = ("lo", "docker", "br-", "veth", "virbr", "cni", "flannel", "podman")
# TEST-NET-1: routed like all the outside. Nothing is sent there.
_OUTSIDE = ("192.0.2.1", 9)


def own_addresses() -> list[str]:
    """Of all interfaces that lead outside, without another program."""
    room = array.array("B", bytes(_ROOM))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        # The kernel fills the memory whose address stands in the request, and says how much of it.
        request = struct.pack("iL", _ROOM, room.buffer_info()[0])
        used: int = struct.unpack("iL", fcntl.ioctl(asking.fileno(), _SIOCGIFCONF, request))[0]
    found = room.tobytes()[:used]
    entries = [found[start : start + _ENTRY] for start in range(0, used, _ENTRY)]
    named = [(entry[:_NAME].split(b"\0", 1)[0].decode(), socket.inet_ntoa(entry[_ADDRESS])) for entry in entries]
    return sorted({address for name, address in named if not name.startswith(_INNER)})


def outward_address() -> str | None:
    """The one that this host shows to the outside; None where it has no way there."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(_OUTSIDE)
        except OSError:
            return None
        return str(asking.getsockname()[0])
