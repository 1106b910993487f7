"""TCP connections of this host, as the kernel lists them."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Collection, Iterator
from pathlib import Path

_ESTABLISHED = "01"
_LISTS = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))


def address_of(written: str) -> str:
    """An address as /proc/net/tcp writes it: words of four bytes, each the wrong way round. IPv4 in IPv6 is IPv4."""
    raw = b"".join(bytes.fromhex(written[at : at + 8])[::-1] for at in range(0, len(written), 8))
    if len(raw) == 4:
        return socket.inet_ntoa(raw)
    address = ipaddress.IPv6Address(raw)
    return str(address.ipv4_mapped or address)


def remotes(text: str, port: int) -> Iterator[str]:
    """The other end's address of each established connection to a port of this host."""
    for line in text.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 3 and fields[3] == _ESTABLISHED and int(fields[1].rpartition(":")[2], 16) == port:
            yield address_of(fields[2].rpartition(":")[0])


def established(port: int, others: Collection[str], lists: Collection[Path] = _LISTS) -> int:
    """How many connections to a port of this host come from these addresses."""
    texts = [path.read_text(encoding="ascii") for path in lists if path.exists()]
    return sum(remote in others for text in texts for remote in remotes(text, port))
