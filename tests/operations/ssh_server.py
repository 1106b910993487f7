"""A host's sshd on this machine, as far as a tunnel needs it: one key is let in, ports are forwarded or refused."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import paramiko
from paramiko.common import (
    AUTH_FAILED,
    AUTH_SUCCESSFUL,
    OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED,
    OPEN_SUCCEEDED,
)

from modules.spec.fleet import ResolvedHost, Ssh
from modules.spec.settings import HostSettings


@dataclass
class Door(paramiko.ServerInterface):
    """What is let in."""

    key: paramiko.PKey
    forwards: bool

    def __post_init__(self) -> None:
        self.targets: dict[int, tuple[str, int]] = {}

    def get_allowed_auths(self, username: str) -> str:
        """Keys alone."""
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        """That one."""
        return AUTH_SUCCESSFUL if key == self.key else AUTH_FAILED

    def check_channel_direct_tcpip_request(
        self, chanid: int, origin: tuple[str, int], destination: tuple[str, int]
    ) -> int:
        """As `AllowTcpForwarding` says."""
        self.targets[chanid] = destination
        return OPEN_SUCCEEDED if self.forwards else OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED


def _copy(source: paramiko.Channel | socket.socket, sink: paramiko.Channel | socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 15):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def _serve(connection: socket.socket, own: paramiko.PKey, door: Door) -> None:
    transport = paramiko.Transport(connection)
    transport.add_server_key(own)
    with contextlib.suppress(paramiko.SSHException, EOFError):
        transport.start_server(server=door)
        while transport.is_active():
            channel = transport.accept(1)
            if channel is None:
                continue
            there = socket.create_connection(door.targets[channel.get_id()])
            for ends in ((channel, there), (there, channel)):
                threading.Thread(target=_copy, args=ends, daemon=True).start()


@contextlib.contextmanager
def ssh_host(folder: Path, *, forwards: bool = True) -> Iterator[ResolvedHost]:
    """The host as a fleet file has it: its address, port, key and known hosts."""
    for name in ("own", "id"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(words, check=True)
    own, key = (paramiko.Ed25519Key.from_private_key_file(str(folder / name)) for name in ("own", "id"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        (folder / "known").write_text(f"[127.0.0.1]:{port} {own.get_name()} {own.get_base64()}\n")

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    door = Door(key, forwards)
                    threading.Thread(target=_serve, args=(connection, own, door), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        ssh = Ssh(user="spark", port=port, key=str(folder / "id"), known_hosts=str(folder / "known"))
        yield ResolvedHost(name="spark-1", address="127.0.0.1", ssh=ssh, groups=(), settings=HostSettings())
