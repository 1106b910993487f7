"""Interfaces and the neighbours there, as `ip -j` tells them. Pure, but for `asked`."""

from __future__ import annotations

import ipaddress
import json
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass

# Networks within this machine, which no Spark is on. One that is named is asked all the same.
_WITHIN = ("veth", "docker", "br-", "virbr", "tun", "tap", "wg", "tailscale", "cni", "flannel", "ifb")
_GONE = {"FAILED", "INCOMPLETE", "NOARP"}


@dataclass(frozen=True)
class Link:
    """An interface that is up. `ipv4`: its addresses; `ipv6`: those that hold on it alone, with its name as zone."""

    name: str
    index: int
    ipv4: tuple[str, ...]
    ipv6: tuple[str, ...]


@dataclass(frozen=True)
class Neighbour:
    """Somebody on the same wire. `address`: with its zone where it has one. `mac`: empty where it is not told."""

    address: str
    link: str
    mac: str = ""


def links(text: str, wanted: Iterable[str] = ()) -> list[Link]:
    """The interfaces to look at, by `ip -j addr`. `wanted`: these and no others."""
    names = set(wanted)
    found = []
    for one in json.loads(text or "[]"):
        name, flags = str(one.get("ifname", "")), one.get("flags", [])
        chosen = name in names if names else not name.startswith(_WITHIN)
        if not chosen or "UP" not in flags or "LOOPBACK" in flags or "MULTICAST" not in flags:
            continue
        addresses = one.get("addr_info", [])
        ipv4 = tuple(each["local"] for each in addresses if each.get("family") == "inet")
        link_local = [each["local"] for each in addresses if each.get("family") == "inet6" and each["scope"] == "link"]
        if ipv4 or link_local:
            found.append(Link(name, int(one["ifindex"]), ipv4, tuple(f"{each}%{name}" for each in link_local)))
    return found


def neighbours(text: str, of: Iterable[Link]) -> list[Neighbour]:
    """Who is known on these links, by `ip -j neigh`. Those that did not answer, and groups, are left out."""
    names = {link.name for link in of}
    found = []
    for one in json.loads(text or "[]"):
        address, link = str(one.get("dst", "")), str(one.get("dev", ""))
        if link not in names or not one.get("lladdr") or _GONE & set(one.get("state", ())):
            continue
        parsed = ipaddress.ip_address(address)
        if not parsed.is_multicast:
            zone = f"%{link}" if parsed.version == 6 and parsed.is_link_local else ""
            found.append(Neighbour(f"{address}{zone}", link, str(one["lladdr"])))
    return found


def asked(*words: str) -> str:
    """What `ip -j …` says; empty where there is no such program."""
    try:
        return subprocess.run(["ip", "-j", *words], capture_output=True, text=True, check=False, timeout=10).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
