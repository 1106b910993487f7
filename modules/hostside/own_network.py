"""What this host's network is called: the interface that has an address, and the RoCE devices whose link is up.

Asked without netlink, which the sandbox of a service's unit does not allow.
"""

from __future__ import annotations

import fcntl
import ipaddress
import socket
import struct
from pathlib import Path

SYS = Path("/sys/class")
PROC = Path("/proc")
_SIOCGIFADDR = 0x8915
_ACTIVE = "ACTIVE"


def interface_of(address: str, sys: Path = SYS, proc: Path = PROC) -> str | None:
    """The interface whose address it is; None where no interface has it."""
    wanted = ipaddress.ip_address(address.partition("%")[0])
    if wanted.version == 6:
        lines = [line.split() for line in (proc / "net" / "if_inet6").read_text(encoding="ascii").splitlines()]
        return next((line[5] for line in lines if line[0] == wanted.exploded.replace(":", "")), None)
    names = sorted(path.name for path in (sys / "net").iterdir())
    return next((name for name in names if ipv4_of(name) == str(wanted)), None)


def ipv4_of(interface: str) -> str | None:
    """The first IPv4 address of an interface; None where it has none."""
    request = struct.pack("256s", interface.encode()[:15])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            return socket.inet_ntoa(fcntl.ioctl(asked.fileno(), _SIOCGIFADDR, request)[20:24])
        except OSError:
            return None


def active_devices(sys: Path = SYS) -> list[str]:
    """RoCE devices with a port whose link is up, as NCCL names them."""
    found = []
    for path in sorted((sys / "infiniband").glob("*/ports/*/state")):
        try:
            state = path.read_text(encoding="ascii")
        except OSError:
            continue
        if state.strip().endswith(_ACTIVE):
            found.append(path.parents[2].name)
    return list(dict.fromkeys(found))
