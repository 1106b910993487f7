"""What machines say of themselves by multicast DNS, put together. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from modules.discover.dns import AAAA, PTR, SRV, TXT, A, Record

# What sshd is announced as; DGX OS' own tools look for the first.
SSH = ("_ssh._tcp", "_sftp-ssh._tcp")
ASKED = (*SSH, "_workstation._tcp", "_device-info._tcp")
SERVICES = "_services._dns-sd._udp.local"
# What a host can be called. Anybody on the link may send whatever they like, and names end up in a fleet file.
_HOST = re.compile(r"[\w-]+(\.[\w-]+)*\.local")
# Of other services only those whose name has one of these words are asked for.
_OF_INTEREST = ("nvidia", "dgx", "spark", "nvsync")


@dataclass
class Announced:
    """A machine. `name`: with `.local`. `services`: types that it offers. `port`: of its sshd, as announced."""

    name: str
    addresses: set[str] = field(default_factory=set)
    services: set[str] = field(default_factory=set)
    model: str | None = None
    port: int = 22


def further_types(found: Iterable[Record]) -> list[str]:
    """Types of services that are announced here, were not asked for, and look like NVIDIA's own."""
    types = {one.data.removesuffix(".local") for one in found if one.kind == PTR and one.name == SERVICES}
    return sorted(one for one in types - set(ASKED) if any(word in one.lower() for word in _OF_INTEREST))


def announced(found: Iterable[tuple[str, Record]]) -> dict[str, Announced]:
    """Machines by name. `found`: who has sent it (an address, with its zone) → a record."""
    machines: dict[str, Announced] = {}
    found = [(sender, one) for sender, one in found]
    for sender, one in found:
        name = one.name.lower()
        if one.kind in {A, AAAA} and name.endswith(".local"):
            address = _with_zone(one.data, sender)
            if address is not None:
                _machine(machines, name).addresses.add(address)
        elif one.kind == PTR and name.endswith(".arpa") and one.data.lower().endswith(".local"):
            address = of_reverse(name)
            if address is not None:
                _machine(machines, one.data.lower()).addresses.add(address)
        elif one.kind == SRV:
            machine = _machine(machines, one.data.lower())
            kind = service_of(one.name)
            machine.services.add(kind)
            if kind in SSH:
                machine.port = one.port
    for _, one in found:
        if one.kind == TXT and service_of(one.name) == "_device-info._tcp":
            instance = one.name.partition("._device-info")[0].lower()
            told = dict(line.partition("=")[::2] for line in one.data.splitlines())
            machine_named = machines.get(f"{instance}.local")
            if machine_named is not None:
                machine_named.model = plain(told.get("model") or "") or machine_named.model
    return machines


def service_of(instance: str) -> str:
    """`_ssh._tcp` of `spark-1._ssh._tcp.local`."""
    labels = instance.removesuffix(".local").split(".")
    return ".".join(labels[-2:])


def reverse(address: str) -> str:
    """The name that asks for the name of an address."""
    return ipaddress.ip_address(address.partition("%")[0]).reverse_pointer


def of_reverse(name: str) -> str | None:
    """The IPv4 address of such a name; those of IPv6 are told otherwise."""
    labels = name.removesuffix(".in-addr.arpa").split(".")
    if not name.endswith(".in-addr.arpa") or len(labels) != 4:
        return None
    address = ".".join(reversed(labels))
    try:
        return str(ipaddress.IPv4Address(address))
    except ValueError:
        return None


def plain(text: str) -> str:
    """Without what a terminal would obey, and a fleet file can not hold."""
    return "".join(one for one in text if one.isprintable())


def _machine(machines: dict[str, Announced], name: str) -> Announced:
    """That of a name; what is none of a host is told nobody."""
    return machines.setdefault(name, Announced(name)) if _HOST.fullmatch(name) else Announced(name)


def _with_zone(address: str, sender: str) -> str | None:
    """A link-local address means something only with the interface that it was heard at."""
    parsed = ipaddress.ip_address(address)
    if parsed.is_loopback:
        return None
    if parsed.version == 6 and parsed.is_link_local:
        zone = sender.partition("%")[2]
        return f"{address}%{zone}" if zone else None
    return address
