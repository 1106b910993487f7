"""What this host has of the network between Sparks.

The controller sends this text and those that it imports to `python3 -c`, so that the host is asked before anything of
ours is on it.
"""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.netplan_files import DRIVER, foreign
    from modules.hostside.whole_ping import ping
else:
    from netplan_files import DRIVER, foreign
    from whole_ping import ping

_SECRET = re.compile(r"(?im)^(\s*\S*(?:password|psk|secret|key)\S*\s*:).*$")


def text_of(path: Path) -> str | None:
    """The text of a file without the white space around it, None where none can be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def said(*command: str) -> Any:
    """What a program prints as JSON; None where it does not."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=20, check=False)
        return json.loads(done.stdout or b"null")
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


def rdma_of(device: Path, sysfs: Path) -> dict[str, Any] | None:
    """The RDMA device of a PCI function, as the kernel's files tell of it."""
    names = sorted(path.name for path in device.glob("infiniband/*"))
    if not names:
        return None
    home = sysfs / "class/infiniband" / names[0]
    port = home / "ports/1"
    gids = [
        [int(path.name), text_of(path), text_of(port / "gid_attrs/types" / path.name)]
        for path in sorted((port / "gids").glob("*"))
        if text_of(path) not in {None, "0000:0000:0000:0000:0000:0000:0000:0000"}
    ]
    return {
        "name": names[0],
        "firmware": text_of(home / "fw_ver"),
        "board": text_of(home / "board_id"),
        "state": text_of(port / "state"),
        "rate": text_of(port / "rate"),
        "gids": gids if (port / "gids").is_dir() else None,
    }


def ports(sysfs: Path) -> list[dict[str, Any]]:
    """Every network interface of a ConnectX; a virtual function is none of its own."""
    found = []
    for link in sorted((sysfs / "class/net").glob("*")):
        device = link / "device"
        if (device / "driver").resolve().name != DRIVER or (device / "physfn").exists():
            continue
        found.append(
            {
                "name": link.name,
                "pci": device.resolve().name,
                "speed": text_of(link / "speed"),
                "pcie_speed": text_of(device / "current_link_speed"),
                "pcie_width": text_of(device / "current_link_width"),
                "rdma": rdma_of(device, sysfs),
            }
        )
    return found


def file_state(path: Path) -> list[str] | None:
    """Hash, mode and owner of a file."""
    try:
        about = path.stat()
        owner = f"{pwd.getpwuid(about.st_uid).pw_name}:{'root' if about.st_gid == 0 else about.st_gid}"
        return [hashlib.sha256(path.read_bytes()).hexdigest(), f"{about.st_mode & 0o7777:o}", owner]
    except (OSError, KeyError):
        return None


def gather(request: dict[str, Any]) -> dict[str, Any]:
    """Everything that the controller asks.

    `request`: `sysfs` (where the kernel shows its devices), `netplan` (our file), `mark` (its first line), `files`
    (whose hash and mode matter), `pings` (`from`, `to`, `bytes`: what is to be tried).
    """
    sysfs, netplan = Path(request["sysfs"]), Path(request["netplan"])
    links = said("ip", "-j", "addr") or []
    held = {each["local"]: link["ifname"] for link in links for each in link.get("addr_info", [])}
    found = ports(sysfs)
    macs = {link["ifname"]: link.get("address", "") for link in links}
    text = text_of(netplan)
    asked = [each for each in request["pings"] if each["from"] in held]
    with ThreadPoolExecutor(max_workers=max(1, len(asked))) as pool:
        troubles = list(
            pool.map(
                lambda number, each: ping(held[each["from"]], each["to"], each["bytes"], number),
                range(len(asked)),
                asked,
            )
        )
    return {
        "kernel": os.uname().release,
        "arguments": text_of(Path("/proc/cmdline")) or "",
        "links": links,
        "routes": said("ip", "-j", "route", "show", "default") or [],
        "ports": found,
        "foreign": foreign({port["name"]: macs.get(port["name"], "") for port in found}, netplan, request["mark"]),
        "text": None if text is None else _SECRET.sub(r"\1 (not shown)", text) + "\n",
        "files": {path: file_state(Path(path)) for path in request["files"]},
        "has_netplan": any(os.access(f"{folder}/netplan", os.X_OK) for folder in ("/usr/sbin", "/usr/bin", "/sbin")),
        "boots_with": [word for word in ("kho=off",) if word in (text_of(Path("/boot/grub/grub.cfg")) or "")],
        "pending": Path("/var/lib/tinderbox/fabric/pending.json").exists(),
        "pings": [{**each, "trouble": trouble} for each, trouble in zip(asked, troubles)],  # noqa: B905, from 3.10 on
    }
