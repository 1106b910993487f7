"""What netplan is told of the fabric's ports."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from modules.fabric.ports import PlannedPort
from modules.spec.fabric import Fabric

NETPLAN = "/etc/netplan/40-cx7.yaml"
MARK = "# By Tinderbox, fabric of the fleet file."
"""The first line of what we write; a file without it is not ours."""


def netplan_text(fabric: Fabric, ports: Sequence[PlannedPort]) -> str:
    """The file for these ports. No renderer is named, so that the one that the host has for all stays in charge."""
    lines = [MARK, "network:", "  version: 2", "  ethernets:"]
    for port in ports:
        peers = ", ".join(port.peers)
        lines += [
            f"    # Port {port.port.place}, half {port.twin + 1} of 2, {_toward(fabric)} {peers}",
            f"    {port.name}:",
            f"      addresses: [{port.address}]",
            "      dhcp4: false",
            "      dhcp6: false",
            "      accept-ra: false",
            "      link-local: []",
            f"      mtu: {port.mtu}",
            "      optional: true",
        ]
    return "\n".join(lines) + "\n"


def _toward(fabric: Fabric) -> str:
    return "by a switch to" if fabric.topology == "switch" else "to"


def netplan_diff(before: str | None, after: str | None) -> list[str]:
    """What changes in the file, line by line as `diff -u` has it; nothing where nothing does."""
    old, new = ((text or "").splitlines() for text in (before, after))
    names = (NETPLAN if before is not None else "/dev/null", NETPLAN if after is not None else "/dev/null")
    return list(difflib.unified_diff(old, new, *names, lineterm=""))
