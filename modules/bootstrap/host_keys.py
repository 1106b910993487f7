"""Whether a host key is the one that is expected. Pure, but for the file of known hosts."""

from __future__ import annotations

import base64
import hashlib
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import paramiko


class Trust(Enum):
    """What is known of a key that a host has shown."""

    KNOWN = "known"
    NAMED = "named"  # by its fingerprint, in the fleet file
    NEW = "new"
    CHANGED = "changed"


@dataclass(frozen=True)
class HostKey:
    """A host's public key. `kind`: as `ssh-ed25519`; `text`: base64, as in known_hosts."""

    kind: str
    text: str

    @property
    def fingerprint(self) -> str:
        """As `ssh-keygen -lf` prints it."""
        digest = hashlib.sha256(base64.b64decode(self.text)).digest()
        return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")

    @property
    def short_kind(self) -> str:
        """As `ssh-keygen -lf` names the kind."""
        return self.kind.removeprefix("ssh-").partition("-")[0].upper()


def place(address: str, port: int) -> str:
    """How known_hosts names a host."""
    return address if port == 22 else f"[{address}]:{port}"


def known_keys(files: Sequence[Path], name: str) -> list[HostKey]:
    """The keys that these files hold of a host. Lines that are none are passed over, and files that are not there."""
    found: list[HostKey] = []
    for file in files:
        for line in file.read_text(errors="replace").splitlines() if file.is_file() else ():
            if line.strip() and not line.lstrip().startswith(("#", "@")):
                found += _of_line(line, name)
    return found


def _of_line(line: str, name: str) -> list[HostKey]:
    keys = paramiko.HostKeys()
    try:
        entry = paramiko.hostkeys.HostKeyEntry.from_line(line)
    except (paramiko.SSHException, ValueError):
        return []
    if entry is None or entry.key is None:
        return []
    for each in entry.hostnames or ():
        keys.add(each, entry.key.get_name(), entry.key)
    return [HostKey(entry.key.get_name(), entry.key.get_base64())] if keys.lookup(name) else []


def trust(shown: HostKey, known: Sequence[HostKey], fingerprint: str | None) -> Trust:
    """What is known of the key. `known`: what known_hosts has of the host; `fingerprint`: what the fleet file says.

    The fleet file counts before known_hosts: it is what the owner wrote for this very fleet.
    """
    if fingerprint is not None and shown.fingerprint != fingerprint:
        return Trust.CHANGED
    if shown in known:
        return Trust.KNOWN
    if known:
        return Trust.CHANGED
    return Trust.NEW if fingerprint is None else Trust.NAMED


def remember(file: Path, keys: Sequence[tuple[str, HostKey]]) -> None:
    """Add hosts' keys to a file of known hosts: by a rename, so that it is whole at any time."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # A link stays one: the file that it leads to is the one that is kept.
    file = file.resolve()
    former = file.read_text() if file.is_file() else ""
    ends = "" if not former or former.endswith("\n") else "\n"
    lines = "".join(f"{name} {key.kind} {key.text}\n" for name, key in keys)
    with tempfile.NamedTemporaryFile("w", dir=file.parent, prefix=f".{file.name}-", delete=False) as fresh:
        fresh.write(former + ends + lines)
    Path(fresh.name).chmod(file.stat().st_mode & 0o777 if file.is_file() else 0o600)
    Path(fresh.name).replace(file)
