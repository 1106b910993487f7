"""A connection of the first login: host key first, then a key or a password. No word of it goes into a log."""

from __future__ import annotations

import codecs
import logging
import socket
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import paramiko
from cryptography.exceptions import UnsupportedAlgorithm
from pyinfra.connectors.sshuserclient.client import SSHClient

from modules.bootstrap.host_keys import HostKey, known_keys, place
from modules.bootstrap.refusal import RefusedError
from modules.spec.fleet import ResolvedHost

# Where nobody takes its records, Python prints them: tracebacks of what a refusal says in a line.
logging.getLogger("paramiko").addHandler(logging.NullHandler())

_CONNECT_S, _ANSWER_S = 10.0, 60.0
# The host's fastest first; what OpenSSH and pyinfra prefer, too.
KINDS = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa")
# What paramiko passes on of an answer that is none of SSH.
_STRANGE = (ValueError, LookupError, TypeError, struct.error, UnsupportedAlgorithm)
_RSA = ("rsa-sha2-512", "rsa-sha2-256")


@dataclass(frozen=True)
class Route:
    """Where a host is, as your SSH configuration tells it. `name`: in known_hosts; `files`: those of known hosts."""

    address: str
    port: int
    name: str
    files: tuple[Path, ...]


def route_of(host: ResolvedHost) -> Route:
    """How pyinfra, too, will look for the host. Raises `RefusedError`: a jump host on the way lets nobody through."""
    try:
        address, _, _, _, files, _, _ = SSHClient().parse_config(
            host.address, {"port": host.ssh.port}, ssh_config_file=host.ssh.config
        )
    except (OSError, EOFError, paramiko.SSHException) as error:
        what = f"the way that your SSH configuration has for {host.address} is closed ({error})"
        raise RefusedError(what, f"try it: ssh {host.ssh.user}@{host.address}") from error
    files = (host.ssh.known_hosts,) if host.ssh.known_hosts else files
    return Route(address, host.ssh.port, place(address, host.ssh.port), tuple(map(Path, files)))


class Connection:
    """An open connection to a host, whose key is not judged yet, and nobody is logged in. `key`: what it has shown."""

    def __init__(self, host: ResolvedHost, kinds: Sequence[str] = KINDS) -> None:
        """Connect. Raises `RefusedError`: it is not reached, or is no sshd."""
        self.host = host
        self.transport = _transport(host, kinds)
        shown = self.transport.get_remote_server_key()
        self.key = HostKey(shown.get_name(), shown.get_base64())

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.transport.close()

    def methods(self) -> list[str]:
        """By what sshd lets this user in, as it says; empty: it lets anybody in."""
        try:
            self.transport.auth_none(self.host.ssh.user)
        except paramiko.BadAuthenticationType as error:
            return list(error.allowed_types)
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise _ended(self.host) from error
        return []

    def let_in_by_key(self, keys: Iterable[paramiko.PKey]) -> bool:
        """Log in by one of these."""
        for key in keys:
            try:
                self.transport.auth_publickey(self.host.ssh.user, key)
            except paramiko.AuthenticationException:
                continue
            except (paramiko.SSHException, EOFError, OSError) as error:
                raise _ended(self.host) from error
            if self.transport.is_authenticated():
                return True
        return False

    def let_in_by_password(self, password: str) -> bool:
        """Log in by it; also where sshd asks for it by a question of its own (keyboard-interactive)."""
        try:
            self.transport.auth_password(self.host.ssh.user, password)
        except paramiko.AuthenticationException:
            return False
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise _ended(self.host) from error
        return self.transport.is_authenticated()

    def command(self, command: str, *, stdin: bytes = b"") -> tuple[int, str]:
        """Run a shell command. Returns its status, and what it said on standard output and standard error together."""
        with self.channel(command) as channel:
            try:
                if stdin:
                    channel.sendall(stdin)
                channel.shutdown_write()
            except (EOFError, OSError) as error:
                raise _ended(self.host) from error
            said = "".join(heard(channel))
            return channel.recv_exit_status(), said

    def channel(self, command: str) -> paramiko.Channel:
        """A channel on which this command runs, its standard error joined to its standard output."""
        try:
            channel = self.transport.open_session(timeout=_CONNECT_S)
            channel.settimeout(_ANSWER_S)
            channel.set_combine_stderr(True)
            channel.exec_command(command)
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise _ended(self.host) from error
        return channel


def heard(channel: paramiko.Channel) -> Iterator[str]:
    """What a command says, piece by piece, to its end. Raises `RefusedError`: nothing came for a minute."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    while True:
        try:
            more = channel.recv(1 << 15)
        except TimeoutError:
            raise RefusedError("the host did not answer for a minute", "look at the host, and run this again") from None
        yield decoder.decode(more)
        if not more:
            return


def shown_key(host: ResolvedHost, route: Route) -> HostKey:
    """The key that a host shows: of a kind that is known of it already, or named in the fleet file, if it has one."""
    known = known_keys(route.files, route.name)
    wanted = host.ssh.host_key
    first: HostKey | None = None
    kinds = list(dict.fromkeys(key.kind for key in known)) if known else list(KINDS)
    tries: list[list[str]] = [[kind] for kind in kinds] if known or wanted is not None else [kinds]
    for kinds in tries:
        try:
            with Connection(host, kinds) as connection:
                key = connection.key
        except _NoSuchKindError:
            continue
        if key in known or key.fingerprint == wanted:
            return key
        first = first or key
    if first is not None:
        return first
    with Connection(host) as connection:
        return connection.key


class _NoSuchKindError(RefusedError):
    """The host has no key of the kinds that were asked for."""


def _transport(host: ResolvedHost, kinds: Sequence[str]) -> paramiko.Transport:
    here = f"hosts.{host.name}"
    port = host.ssh.port
    try:
        address, config, *_ = SSHClient().parse_config(host.address, {"port": port}, ssh_config_file=host.ssh.config)
        sock = config.get("sock") or socket.create_connection((address, port), timeout=_CONNECT_S)
        transport = paramiko.Transport(sock)
    except socket.gaierror as error:
        what = f"{host.address} is no name that this machine knows"
        raise RefusedError(what, f"correct the address of {here}, or your DNS") from error
    except (OSError, EOFError, paramiko.SSHException) as error:
        said = getattr(error, "strerror", None) or str(error) or type(error).__name__
        what = f"nothing lets us in at {host.address} port {port} ({said})"
        raise RefusedError(
            what, f"is it on, and does sshd run there? Else correct address and ssh.port of {here}"
        ) from error
    transport.banner_timeout = transport.auth_timeout = _ANSWER_S
    wanted = [each for kind in kinds for each in (_RSA if kind == "ssh-rsa" else (kind,))]
    options = transport.get_security_options()
    options.key_types = [kind for kind in wanted if kind in options.key_types]
    try:
        transport.start_client(timeout=_ANSWER_S)
    except (paramiko.SSHException, *_STRANGE) as error:
        transport.close()
        if "no acceptable host key" in str(error).lower() or "incompatible ssh peer" in str(error).lower():
            raise _NoSuchKindError(f"no host key of a known kind ({error})", "look at sshd's HostKey lines") from error
        what = f"what answers at {host.address} port {port} is no sshd in order ({error})"
        raise RefusedError(what, f"correct address and ssh.port of {here}") from error
    except (EOFError, OSError) as error:
        transport.close()
        raise _ended(host) from error
    return transport


def _ended(host: ResolvedHost) -> RefusedError:
    what = f"the host ended the connection to {host.address} port {host.ssh.port}"
    return RefusedError(what, "run this again; if it stays so, look at its journal: journalctl -u ssh")
