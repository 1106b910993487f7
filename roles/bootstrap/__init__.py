"""How the owner comes in, as it shall stay. The first login, which opens the host, is made by `modules.bootstrap`."""

from __future__ import annotations

from pyinfra import host
from pyinfra.api import deploy

from modules.operations.bootstrap import docker_joined, key_admitted, key_of, sudo_settled
from modules.operations.connection import keep_alive
from modules.spec.fleet import Ssh
from roles.preflight.sudo import stop_where_sudo_asks


@deploy("Bootstrap")
def bootstrap(ssh: Ssh, line: str) -> None:
    """Keep the host open to the owner's key. `line`: the public key, `type base64 comment`."""
    keep_alive(host)
    stop_where_sudo_asks(host)
    key_admitted(name="The owner's key is let in", line=line, _sudo=False)
    sudo_settled(name="sudo asks no password", sudo=ssh.sudo, key=key_of(line))
    docker_joined(name="Group docker", key=key_of(line))
