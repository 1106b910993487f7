"""The files of a lab: keys, SSH configuration, and its fleet file."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from modules.lab.layout import DEFAULT_NAME, ROOT, USER, Layout
from modules.lab.pieces.identity import APT_FINGERPRINT, CA

DEFAULT_FLEET = ROOT / "inventory" / "lab.yaml"
_PREFIX = f"../.lab/{DEFAULT_NAME}/"


def write_key(layout: Layout) -> str:
    """Make the lab's SSH key unless it is there. Returns the public half."""
    public = layout.key.with_suffix(".pub")
    if not (layout.key.exists() and public.exists()):
        layout.folder.mkdir(parents=True, exist_ok=True)
        key = Ed25519PrivateKey.generate()
        layout.key.touch(mode=0o600)
        layout.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
        line = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
        public.write_text(f"{line} tinderbox-{layout.name}\n")
    return public.read_text()


def write_trust(layout: Layout, identity: Path) -> None:
    """Put the CA and the apt key's fingerprint beside the fleet file."""
    layout.folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(identity / CA, layout.ca)
    shutil.copyfile(identity / APT_FINGERPRINT, layout.apt_fingerprint)


def write_ssh(layout: Layout, ports: Mapping[str, int], keys: Mapping[str, list[str]]) -> None:
    """Write `known_hosts` and `ssh_config` (both: host → ...)."""
    known = [f"[127.0.0.1]:{ports[host]} {key}\n" for host in ports for key in keys[host]]
    layout.known_hosts.write_text("".join(known))
    blocks = [
        f"Host {host}\n    HostName 127.0.0.1\n    Port {port}\n    User {USER}\n"
        f"    IdentityFile {layout.key}\n    IdentitiesOnly yes\n"
        f"    UserKnownHostsFile {layout.known_hosts}\n    StrictHostKeyChecking yes\n"
        for host, port in ports.items()
    ]
    layout.ssh_config.write_text("\n".join(blocks))


def write_fleet(layout: Layout, ports: Mapping[str, int]) -> None:
    """Write the lab's fleet file: the default one with these hosts, under this name."""
    fleet = yaml.safe_load(DEFAULT_FLEET.read_text())
    text = yaml.safe_dump(derive_fleet(fleet, layout.name, ports), sort_keys=False, width=120)
    layout.fleet.write_text(f"# Made by `python -m modules.lab up` out of inventory/lab.yaml.\n{text}")


def derive_fleet(fleet: Mapping[str, Any], name: str, ports: Mapping[str, int]) -> dict[str, Any]:
    """The default fleet under another name, with other hosts, for a file that lies in the lab's own folder.

    What the default says of its first host holds for every host.
    """
    moved = _moved(fleet)
    pattern = next(iter(moved["hosts"].values()))
    hosts = {
        host: {**pattern, "address": "127.0.0.1", "ssh": {**pattern.get("ssh", {}), "port": port}}
        for host, port in ports.items()
    }
    return {**moved, "fleet": name, "hosts": hosts}


def _moved(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _moved(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_moved(entry) for entry in value]
    return value.removeprefix(_PREFIX) if isinstance(value, str) else value
