"""Which files of a host configure which of its network interfaces: netplan's, NetworkManager's, networkd's."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path
from typing import Any

DRIVER = "mlx5_core"
# A name within a text, and not a part of a longer one.
_WHOLE = r"(?<![\w.-]){}(?![\w.-])"


def blocks(text: str) -> list[tuple[str, str, str]]:
    """Kind (`ethernets`, `bonds`, ...), name and text of each device in a netplan file in block style."""
    found: list[tuple[str, str, list[str]]] = []
    section, depth = "", -1
    for line in text.splitlines():
        bare = line.split(" #")[0].rstrip()
        if not bare.strip() or bare.lstrip().startswith("#"):
            continue
        indent = len(bare) - len(bare.lstrip())
        key = re.match(r"""\s*["']?([^\s"':{]+)["']?\s*:""", bare)
        if key and re.fullmatch(r"(ethernets|modems|wifis|bridges|bonds|tunnels|vlans|vrfs|.*-devices)", key[1]):
            section, depth = key[1], -1
        elif section and key and (depth in {-1, indent}):
            depth = indent
            found.append((section, key[1], [bare]))
        elif section and found and indent > depth >= 0:
            found[-1][2].append(bare)
        elif indent < depth:
            section = ""
    return [(kind, name, "\n".join(lines)) for kind, name, lines in found]


def concerns(kind: str, name: str, text: str, port: str, mac: str) -> bool:
    """Whether a device of a netplan file is that port, or is made of it."""
    if kind != "ethernets":
        return re.search(_WHOLE.format(re.escape(port)), text) is not None
    if "match:" not in text:
        return name == port
    wanted = dict(re.findall(r"""(name|macaddress|driver):\s*["']?([^\s"',}]+)""", text.partition("match:")[2]))
    values = {"name": port, "macaddress": mac.lower(), "driver": DRIVER}
    return bool(wanted) and all(fnmatch.fnmatchcase(values[key], value.lower() if key == "macaddress" else value)
                                for key, value in wanted.items())  # fmt: skip


def mentions(text: str, macs: dict[str, str]) -> tuple[list[str], bool]:
    """The ports that a netplan file configures, and whether it configures nothing else."""
    devices = blocks(text)
    ours = [[port for port, mac in macs.items() if concerns(*device, port, mac)] for device in devices]
    named = sorted({port for found in ours for port in found})
    plain = all(kind == "ethernets" for kind, _, _ in devices)
    if not devices:
        named = [port for port in macs if re.search(_WHOLE.format(re.escape(port)), text)]
    return named, plain and bool(devices) and all(ours)


def foreign(macs: dict[str, str], netplan: Path, mark: str) -> list[dict[str, Any]]:
    """Files that are not ours and configure the ports. `alone`: they configure nothing else."""
    found = []
    for path in sorted(path for folder in ("/etc/netplan", "/run/netplan", "/lib/netplan")
                       for path in Path(folder).glob("*.yaml")):  # fmt: skip
        text = _text_of(path)
        if path == netplan and text.startswith(mark):
            continue
        named, alone = mentions(text, macs)
        if named or path == netplan:
            found.append({"file": str(path), "ports": named, "alone": alone and str(path).startswith("/etc/")})
    others = {"/etc/NetworkManager/system-connections": "interface-name=", "/etc/systemd/network": "Name="}
    for folder, key in others.items():
        for path in sorted(Path(folder).glob("*")):
            lines = _text_of(path).splitlines()
            named = [port for port in macs for line in lines if line.strip().startswith(key)
                     and any(fnmatch.fnmatchcase(port, word) for word in line.partition("=")[2].split())]  # fmt: skip
            if named:
                found.append({"file": str(path), "ports": sorted(set(named)), "alone": False})
    return found


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
