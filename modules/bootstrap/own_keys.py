"""The owner's key: found, or made where there is none."""

from __future__ import annotations

import getpass
import os
import socket
from dataclasses import dataclass
from pathlib import Path

import paramiko
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from paramiko.pkey import UnknownKeyType

from modules.bootstrap.refusal import RefusedError
from modules.fleet.problem import shown
from modules.spec.fleet import Ssh

# Those that OpenSSH and pyinfra look for.
USUAL = ("id_ed25519", "id_ecdsa", "id_rsa")
# sshd ends a connection after six keys that it does not know.
_MOST = 4


@dataclass(frozen=True)
class OwnKeys:
    """What the fleet logs in with. `line`: `type base64 comment`, to be installed. `private`: what is tried in turn."""

    line: str
    private: tuple[paramiko.PKey, ...]


def make_key(path: Path) -> str:
    """Make an ed25519 key and its public half. Returns the latter. Neither is ever written over."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    key = Ed25519PrivateKey.generate()
    line = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    text = f"{line} {getpass.getuser()}@{socket.gethostname()}\n"
    # The public half first: a run that is cut between the two finds no key, and makes another.
    path.with_name(f"{path.name}.pub").write_text(text)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.touch(mode=0o600)
    fresh.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    os.link(fresh, path)
    fresh.unlink()
    return text


def own_keys(ssh: Ssh) -> OwnKeys | None:
    """The keys by which a host of these settings is reached; None: there is none yet.

    Raises `RefusedError`: `ssh.key` can not be used.
    """
    if ssh.key is not None:
        path = Path(ssh.key)
        key = _loaded(path)
        if key is None:
            raise RefusedError(
                f"key {shown(path)} has a passphrase, or is of a kind that is not known here",
                "give it to your SSH agent (ssh-add) and take ssh.key out, or name a key without one",
            )
        return OwnKeys(public_line(path, key), (key,))
    files = [(path, key) for path in usual_files() if (key := _loaded(path)) is not None]
    agent = list(paramiko.Agent().get_keys())
    private = [key for _, key in files] + [key for key in agent if key not in [one for _, one in files]]
    if not private:
        return None
    line = public_line(*files[0]) if files else f"{agent[0].get_name()} {agent[0].get_base64()} {agent[0].comment}"
    return OwnKeys(line.strip(), tuple(private[:_MOST]))


def line_of(ssh: Ssh) -> str:
    """The public key that a host of these settings is to take, for a fleet that has been opened by it."""
    keys = own_keys(ssh)
    return "" if keys is None else keys.line


def usual_files() -> list[Path]:
    """The usual keys that are there."""
    return [path for name in USUAL if (path := Path.home() / ".ssh" / name).is_file()]


def public_line(path: Path, key: paramiko.PKey) -> str:
    """`type base64 comment`; the comment stands in the .pub file, if anywhere."""
    words = f"{key.get_name()} {key.get_base64()}"
    public = path.with_name(f"{path.name}.pub")
    for line in public.read_text(errors="replace").splitlines() if public.is_file() else ():
        if line.startswith(f"{words} "):
            return line.strip()
    return words


def _loaded(path: Path) -> paramiko.PKey | None:
    try:
        return paramiko.PKey.from_path(path)
    except (paramiko.SSHException, UnknownKeyType, ValueError, TypeError, OSError):
        return None
