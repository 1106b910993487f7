"""One host's first login: the owner's key in, and sudo without a password. What comes after goes by the key."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass

from modules.bootstrap.answers import QUESTIONS, Visited, check_python, sudo_refusal, visited
from modules.bootstrap.connection import Connection, heard
from modules.bootstrap.host_keys import HostKey
from modules.bootstrap.own_keys import OwnKeys
from modules.bootstrap.passwords import Passwords
from modules.bootstrap.refusal import RefusedError
from modules.operations.bootstrap import admission, sudoers_file
from modules.operations.managed_files import placing
from modules.spec.fleet import ResolvedHost

_PROMPT, _ROOT = "tinderbox-wants-a-password:", "tinderbox-is-root"


@dataclass(frozen=True)
class Opened:
    """What was done for a host to be reached by the key. Nothing, where it was so before."""

    key_added: bool
    sudoers_placed: bool


def open_host(
    host: ResolvedHost, key: HostKey, keys: OwnKeys, passwords: Passwords, say: Callable[[str], None]
) -> Opened:
    """Have the host take the key, and sudo ask nothing. `key`: the host's own, as it was judged.

    Nothing is changed before all is known to be there: python3, and sudo. Raises `RefusedError`.
    """
    with _same(host, key) as connection:
        by_key, password = _let_in(connection, keys, passwords)
        found = visited(connection.command(f"LC_ALL=C sh -c {shlex.quote(QUESTIONS)}")[1])
        check_python(found)
        if not found.is_root and found.sudo == "none":
            raise RefusedError("there is no sudo on the host", "as root of the host: apt-get install -y sudo")
        place_it = not found.is_root and found.sudo != "free"
        if place_it:
            _place_sudoers(connection, found, passwords, password)
            say("sudo asks nothing any more")
        if not by_key:
            _admit(connection, keys)
            say("takes the key")
    if not by_key or place_it:
        _look_again(host, key, keys, found)
    return Opened(not by_key, place_it)


def _same(host: ResolvedHost, key: HostKey) -> Connection:
    """Connect, and go on only with the host that has been judged: no password is given to another one."""
    connection = Connection(host, [key.kind])
    if connection.key != key:
        connection.transport.close()
        raise RefusedError("the host key has changed since it was shown", "another machine may answer: do not go on")
    return connection


def _let_in(connection: Connection, keys: OwnKeys, passwords: Passwords) -> tuple[bool, str | None]:
    """Log in. Returns whether by the key, and the password if by one."""
    host, user = connection.host, connection.host.ssh.user
    methods = connection.methods()
    if not methods:
        return False, None
    if "publickey" in methods and connection.let_in_by_key(keys.private):
        return True, None
    if not {"password", "keyboard-interactive"} & set(methods):
        raise RefusedError(
            f"sshd lets user {user} in by {' or '.join(methods)} alone, and not with this key",
            f"add it at the host's console, as {user}: echo '{keys.line}' >> ~/.ssh/authorized_keys; "
            "or allow passwords there for this first login (PasswordAuthentication yes)",
        )
    for password in passwords.of_login(host):
        if connection.let_in_by_password(password):
            return False, password
        if not connection.transport.is_active():
            break
    root = "; sshd may refuse root whatever the password is (PermitRootLogin): name another user" * (user == "root")
    raise RefusedError(
        f"wrong password for user {user} at {host.address} port {host.ssh.port}, or sshd does not let that user in",
        f"run this again with the right one, or correct ssh.user of hosts.{host.name}{root}",
    )


def _admit(connection: Connection, keys: OwnKeys) -> None:
    status, said = connection.command(shlex.join(admission(keys.line)))
    if status != 0:
        raise RefusedError(
            f"the key could not be added to ~/.ssh/authorized_keys ({_last(said)})",
            "see owner, mode and free space of the user's home on the host",
        )


def _place_sudoers(connection: Connection, found: Visited, passwords: Passwords, of_login: str | None) -> None:
    """As root, by sudo. Its password goes by standard input, and only when sudo wants one."""
    file = sudoers_file(found.user, connection.host.ssh.sudo)
    words = ["sh", "-c", f'echo {_ROOT}; exec "$@"', "tinderbox", *placing(file)]
    command = f"LC_ALL=C LANGUAGE=C sudo -S -p {_PROMPT} {shlex.join(words)}"
    answers = passwords.of_sudo(connection.host, of_login)
    asked, sent, said = 0, False, ""
    with connection.channel(command) as channel:
        for more in heard(channel):
            said += more
            if not sent and _ROOT in said:
                channel.sendall((file.content or "").encode())
                channel.shutdown_write()
                sent = True
            elif not sent and said.count(_PROMPT) > asked:
                asked += 1
                answer = next(answers, None)
                if answer is None:
                    # Sudo gives up at the end of its input; it was not given this one.
                    asked -= 1
                    channel.shutdown_write()
                    sent = True
                    continue
                channel.sendall(f"{answer}\n".encode())
        status = channel.recv_exit_status()
    if _ROOT not in said:
        raise sudo_refusal(found.user, said.replace(_PROMPT, ""), asked=asked)
    if status != 0:
        said = said.partition(_ROOT)[2]
        raise RefusedError(
            f"{file.path} was not put in place: visudo refuses it, or it could not be written ({_last(said)})",
            "nothing was changed by it; see `sudo visudo -c` and the free space on the host",
        )


def _look_again(host: ResolvedHost, key: HostKey, keys: OwnKeys, before: Visited) -> None:
    """By the key alone, as every later run comes: what was done must hold."""
    with _same(host, key) as connection:
        connection.methods()
        if not connection.let_in_by_key(keys.private):
            raise RefusedError(
                "the key was added to ~/.ssh/authorized_keys, and sshd does not take it",
                "see on the host: sudo sshd -T | grep -i -e authorizedkeysfile -e pubkey; and the home must not be "
                "writable by others: chmod go-w ~",
            )
        found = visited(connection.command(f"LC_ALL=C sh -c {shlex.quote(QUESTIONS)}")[1])
    if not before.is_root and found.sudo != "free":
        path = sudoers_file(found.user, host.ssh.sudo).path
        raise RefusedError(
            "sudo still asks for a password",
            f"a later rule of /etc/sudoers or /etc/sudoers.d takes that of {path} back, or the folder is not read: "
            f"see `sudo -l -U {found.user}` on the host",
        )


def _last(said: str) -> str:
    return next((line.strip()[:200] for line in reversed(said.splitlines()) if line.strip()), "it said nothing")
