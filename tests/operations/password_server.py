"""A host's sshd on this machine, which lets a password in and runs commands; its sudo and visudo are stand-ins."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import paramiko
from paramiko.common import AUTH_FAILED, AUTH_SUCCESSFUL, OPEN_SUCCEEDED

USER, PASSWORD = "anna", "of-anna"
# As sudo 1.9 behaves with -n, -S and -p; the rule of ours lets everything through.
_SUDO = """#!/bin/sh
if test "$1" = -n; then test -e "$RULE"; exit; fi
test "$1" = -S && test "$2" = -p || exit 2
prompt="$3"; shift 3
test -n "$SUDO_PASSWORD" || exec "$@"
for try in 1 2 3; do
    printf '%s' "$prompt" >&2
    IFS= read -r word || { echo 'sudo: no password was provided' >&2; exit 1; }
    if test "$word" = "$SUDO_PASSWORD"; then
        test -z "$NO_SUDOER" || { echo 'anna is not in the sudoers file.' >&2; exit 1; }
        exec "$@"
    fi
    echo 'Sorry, try again.' >&2
done
echo 'sudo: 3 incorrect password attempts' >&2
exit 1
"""
# Tests may run as root, who needs no sudo.
_ID = f"""#!/bin/sh
test "$1" = -u && echo 1000 || echo {USER}
"""
_VISUDO = """#!/bin/sh
test -z "$VISUDO_SAYS" || { echo "$VISUDO_SAYS" >&2; exit 1; }
"""


@dataclass
class PasswordHost:
    """What is let in, and how it behaves. `methods`: as sshd names them; `environment`: of commands."""

    folder: Path
    port: int
    methods: str = "publickey,password"
    environment: dict[str, str] = field(default_factory=dict)
    passwords: list[str] = field(default_factory=list)

    @property
    def rule(self) -> Path:
        """Where sudo's rule is put."""
        return self.folder / "sudoers"

    @property
    def keys(self) -> Path:
        """The user's authorized keys."""
        return self.folder / ".ssh" / "authorized_keys"


@dataclass
class _Door(paramiko.ServerInterface):
    host: PasswordHost

    def get_allowed_auths(self, username: str) -> str:
        return self.host.methods

    def check_auth_password(self, username: str, password: str) -> int:
        self.host.passwords.append(password)
        taken = "password" in self.host.methods and (username, password) == (USER, PASSWORD)
        return AUTH_SUCCESSFUL if taken else AUTH_FAILED

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        known = self.host.keys.read_text() if self.host.keys.exists() else ""
        return AUTH_SUCCESSFUL if key.get_base64() in known else AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        threading.Thread(target=_run, args=(channel, command, self.host), daemon=True).start()
        return True


def _run(channel: paramiko.Channel, command: bytes, host: PasswordHost) -> None:
    environment = {**os.environ, "HOME": str(host.folder), "RULE": str(host.rule), **host.environment}
    with subprocess.Popen(
        ["sh", "-c", command.decode()], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, bufsize=0,
    ) as child:  # fmt: skip
        assert child.stdin is not None
        assert child.stdout is not None
        threading.Thread(target=_feed, args=(channel, child), daemon=True).start()
        while data := child.stdout.read(4096):
            channel.sendall(data)
    channel.send_exit_status(child.returncode)
    channel.close()


def _feed(channel: paramiko.Channel, child: subprocess.Popen[bytes]) -> None:
    assert child.stdin is not None
    with contextlib.suppress(OSError):
        while data := channel.recv(4096):
            child.stdin.write(data)
        child.stdin.close()


def _serve(connection: socket.socket, own: paramiko.PKey, host: PasswordHost) -> None:
    transport = paramiko.Transport(connection)
    transport.add_server_key(own)
    # Held here: paramiko closes a channel that nobody has.
    channels = []
    with contextlib.suppress(paramiko.SSHException, EOFError, OSError):
        transport.start_server(server=_Door(host))
        while transport.is_active():
            channels.append(transport.accept(1))


@contextlib.contextmanager
def password_host(folder: Path) -> Iterator[PasswordHost]:
    """The host; its files lie in `folder`, its user's home."""
    own = paramiko.ECDSAKey.generate()
    path = folder / "bin"
    path.mkdir()
    for name, text in {"sudo": _SUDO, "visudo": _VISUDO, "chown": "#!/bin/sh\n", "id": _ID}.items():
        (path / name).write_text(text)
        (path / name).chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host = PasswordHost(folder, listener.getsockname()[1])
        host.environment = {"PATH": f"{path}:{os.environ['PATH']}", "SUDO_PASSWORD": PASSWORD}

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    threading.Thread(target=_serve, args=(connection, own, host), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield host
