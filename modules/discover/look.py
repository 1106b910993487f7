"""A look at one address: is there an sshd, which key does it show, and does it let us in. Changes nothing."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import paramiko

from modules.bootstrap.connection import Connection
from modules.bootstrap.host_keys import HostKey
from modules.bootstrap.refusal import RefusedError
from modules.discover.machine import QUESTIONS, Told, told
from modules.spec.fleet import ResolvedHost, Ssh
from modules.spec.settings import HostSettings


def look(address: str, port: int, user: str, keys: Sequence[paramiko.PKey]) -> tuple[HostKey | None, Told | None]:
    """What is there. No password is ever given; a host key is not judged here, and not remembered."""
    host = ResolvedHost(
        name="found", address=address, ssh=Ssh(user=user, port=port), groups=(), settings=HostSettings()
    )
    key: HostKey | None = None
    try:
        with Connection(host) as connection:
            key = connection.key
            methods = connection.methods() if keys else ["none"]
            if methods and not ("publickey" in methods and connection.let_in_by_key(keys)):
                return key, None
            return key, told(connection.command(f"LC_ALL=C sh -c {shlex.quote(QUESTIONS)}")[1])
    except RefusedError:
        return key, None
