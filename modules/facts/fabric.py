"""What a host has of the network between Sparks, in one round trip."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from pyinfra.api import QuoteString, StringCommand
from typing_extensions import override

from modules.fabric.netplan import MARK, NETPLAN
from modules.fabric.ports import Port
from modules.fabric.wish import Configured
from modules.facts.base import HostFact
from modules.facts.files import FileState

SYSFS = "/sys"
# Where a lab host has what it simulates of the kernel's files.
SIMULATED_SYSFS = "/etc/tinderbox-lab/sys"
_SOURCES = ("netplan_files", "whole_ping", "fabric_state")
_HOSTSIDE = Path(__file__).parents[1] / "hostside"
_LOADER = (
    "import json, sys, types\n"
    "sources, request = map(json.loads, sys.argv[1:])\n"
    "for name, text in sources.items():\n"
    "    module = sys.modules[name] = types.ModuleType(name)\n"
    "    exec(text, module.__dict__)\n"
    "print(json.dumps(module.gather(request)))\n"
)


@dataclass(frozen=True)
class Ping:
    """A packet of `size` bytes, not to be cut, from an address of the host's. `trouble`: empty where it came back."""

    source: str
    target: str
    size: int
    trouble: str


@dataclass(frozen=True)
class FabricState:
    """`others`: interface → its addresses, of those that are not the fabric's. `management`: that of the default route.

    `routed`: all that have one. `text`: netplan's file as it is, secrets left out. `boots_with`: which of our kernel
    arguments the boot loader has. `pending`: a change of netplan's file was not confirmed yet.
    """

    kernel: str
    arguments: tuple[str, ...]
    ports: tuple[Port, ...]
    others: Mapping[str, tuple[str, ...]]
    management: str | None
    foreign: tuple[Configured, ...]
    text: str | None
    files: dict[str, FileState | None]
    has_netplan: bool
    boots_with: tuple[str, ...]
    pending: bool
    pings: tuple[Ping, ...] = field(default=())
    routed: tuple[str, ...] = ()


@cache
def _sources() -> str:
    return json.dumps({name: (_HOSTSIDE / f"{name}.py").read_text() for name in _SOURCES})


class FabricSurvey(HostFact[FabricState]):
    """Ports, addresses, files and, if asked, whether packets come back.

    + files: absolute paths whose content matters
    + pings: (address of the host's, address at the other end, size in bytes); those whose first is nowhere are left out
    + sysfs: where the kernel shows its devices
    """

    @override
    def command(
        self, files: Sequence[str], pings: Sequence[tuple[str, str, int]] = (), sysfs: str = SYSFS
    ) -> StringCommand:
        request = {
            "sysfs": sysfs,
            "netplan": NETPLAN,
            "mark": MARK,
            "files": list(files),
            "pings": [{"from": source, "to": target, "bytes": size} for source, target, size in pings],
        }
        sources, asked = QuoteString(_sources()), QuoteString(json.dumps(request))
        return StringCommand("python3 -c", QuoteString(_LOADER), sources, asked)

    @override
    def parse(self, lines: list[str]) -> FabricState:
        return fabric_state(next(line for line in reversed(lines) if line.startswith("{")))


def fabric_state(document: str) -> FabricState:
    """The state by the document that the host printed. Raises `ValueError`, `KeyError`: it is not what it should be."""
    said: dict[str, Any] = json.loads(document)
    links = {link["ifname"]: link for link in said["links"]}
    names = {port["name"] for port in said["ports"]}
    return FabricState(
        kernel=said["kernel"],
        arguments=tuple(said["arguments"].split()),
        ports=tuple(port_of(port, links.get(port["name"], {})) for port in said["ports"]),
        others={name: _addresses(link) for name, link in links.items() if name not in names and _addresses(link)},
        management=next((route["dev"] for route in said["routes"] if route.get("dev") not in names), None),
        foreign=tuple(Configured(one["file"], tuple(one["ports"]), one["alone"]) for one in said["foreign"]),
        text=said["text"],
        files={path: None if one is None else FileState(*one) for path, one in said["files"].items()},
        has_netplan=said["has_netplan"],
        boots_with=tuple(said["boots_with"]),
        pending=said["pending"],
        routed=tuple(route["dev"] for route in said["routes"] if "dev" in route),
        pings=tuple(Ping(one["from"], one["to"], one["bytes"], one["trouble"]) for one in said["pings"]),
    )


def port_of(port: Mapping[str, Any], link: Mapping[str, Any]) -> Port:
    """A port by what the kernel's files and `ip -j addr` say of it."""
    rdma = port["rdma"] or {}
    flags = link.get("flags", [])
    return Port(
        name=port["name"],
        pci=port["pci"],
        place=f"f{int(port['pci'].rpartition('.')[2])}",
        mac=link.get("address", ""),
        carrier="LOWER_UP" in flags if "UP" in flags else None,
        mtu=link.get("mtu", 0),
        addresses=_addresses(link),
        speed_mbps=_positive(port["speed"]),
        rdma=rdma.get("name"),
        rdma_state=rdma["state"].partition(": ")[2] if rdma.get("state") else None,
        firmware=rdma.get("firmware"),
        gids=None if rdma.get("gids") is None else _gids(rdma["gids"]),
        pcie_gts=_leading(port["pcie_speed"]),
        pcie_width=_positive(port["pcie_width"]),
    )


def _addresses(link: Mapping[str, Any]) -> tuple[str, ...]:
    """IPv4 addresses with their prefix, those of the link itself left out."""
    found = [each for each in link.get("addr_info", []) if each["family"] == "inet" and each["scope"] == "global"]
    return tuple(f"{each['local']}/{each['prefixlen']}" for each in found)


def _gids(rows: Sequence[Sequence[Any]]) -> dict[str, int]:
    """IPv4 address → index of the GID that RoCE v2 has for it."""
    found = {}
    for index, gid, kind in rows:
        mapped = ipaddress.IPv6Address(gid).ipv4_mapped
        if mapped is not None and kind == "RoCE v2":
            found[str(mapped)] = index
    return found


def _positive(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() and int(text) > 0 else None


def _leading(text: str | None) -> float | None:
    """The number in `32.0 GT/s PCIe`."""
    number = re.match(r"[\d.]+", text or "")
    return float(number[0]) if number else None
