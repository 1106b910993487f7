"""A host's sshd on this machine that runs commands here, and places at which nobody, or nobody who speaks, is."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import paramiko
from paramiko.common import AUTH_FAILED, AUTH_SUCCESSFUL, OPEN_SUCCEEDED

_BACKLOG = 1


@dataclass
class Machine(paramiko.ServerInterface):
    """One key is let in. `path`: where its programs are looked for. `running`: what was begun, and has not ended."""

    key: paramiko.PKey
    path: str
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)
    transports: list[paramiko.Transport] = field(default_factory=list)

    def get_allowed_auths(self, username: str) -> str:
        """Keys alone."""
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        """That one."""
        return AUTH_SUCCESSFUL if key == self.key else AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:
        """Of all kinds."""
        return OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        """Run it."""
        threading.Thread(target=self._run, args=(channel, command), daemon=True).start()
        return True

    def drop(self) -> None:
        """Break all connections, as a network does that is gone; what runs sees its input end."""
        for transport in self.transports:
            transport.sock.close()

    def _run(self, channel: paramiko.Channel, command: bytes) -> None:
        process = subprocess.Popen(
            ["sh", "-c", command.decode()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={"PATH": self.path},
        )  # fmt: skip
        self.running.append(process)
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        threading.Thread(target=_feed, args=(channel, process.stdin), daemon=True).start()
        err = threading.Thread(target=_pass_on, args=(process.stderr, channel.sendall_stderr), daemon=True)
        err.start()
        _pass_on(process.stdout, channel.sendall)
        status = process.wait()
        err.join()
        self.running.remove(process)
        with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
            channel.send_exit_status(status if status >= 0 else 128 - status)
            channel.close()


def _feed(channel: paramiko.Channel, stdin: object) -> None:
    with contextlib.suppress(OSError, ValueError):
        while data := channel.recv(1 << 15):
            stdin.write(data)  # type: ignore[attr-defined]
            stdin.flush()  # type: ignore[attr-defined]
    with contextlib.suppress(OSError, ValueError):
        stdin.close()  # type: ignore[attr-defined]


def _pass_on(source: object, send: object) -> None:
    with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
        while data := source.read1(1 << 15):  # type: ignore[attr-defined]
            send(data)  # type: ignore[operator]


@dataclass(frozen=True)
class CommandHost:
    """`port`: on this machine; `key`: who has it is let in; `known`: a known_hosts file with the host's own key."""

    port: int
    key: Path
    known: Path
    machine: Machine


@contextlib.contextmanager
def command_host(folder: Path, path: str) -> Iterator[CommandHost]:
    """It is up. `path`: of its programs."""
    for name in ("own", "id"):
        if not (folder / name).exists():
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
            subprocess.run(words, check=True)
    own, key = (paramiko.Ed25519Key.from_private_key_file(str(folder / name)) for name in ("own", "id"))
    machine = Machine(key, path)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        (folder / "known").write_text(f"[127.0.0.1]:{port} {own.get_name()} {own.get_base64()}\n")

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    threading.Thread(target=serve, args=(connection,), daemon=True).start()

        def serve(connection: socket.socket) -> None:
            transport = paramiko.Transport(connection)
            transport.add_server_key(own)
            machine.transports.append(transport)
            with contextlib.suppress(paramiko.SSHException, EOFError, OSError):
                transport.start_server(server=machine)
                # A channel that nobody has is closed.
                kept = []
                while transport.is_active():
                    kept.append(transport.accept(1))

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield CommandHost(port, folder / "id", folder / "known", machine)
        finally:
            machine.drop()
            for process in list(machine.running):
                process.kill()


@contextlib.contextmanager
def mute_place() -> Iterator[int]:
    """A port at which connections are taken, and nothing is ever said: a host that hangs."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@contextlib.contextmanager
def dark_place() -> Iterator[int]:
    """A port at which nothing is answered at all, as that of a host that is off: its queue is full."""
    with socket.socket() as listener, contextlib.ExitStack() as stack:
        listener.bind(("127.0.0.1", 0))
        listener.listen(_BACKLOG)
        for _ in range(_BACKLOG + 4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                waiting.connect(listener.getsockname())
        yield listener.getsockname()[1]


def closed_place() -> int:
    """A port at which connections are refused."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
