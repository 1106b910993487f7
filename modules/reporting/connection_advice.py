"""What to do when a host can not be reached."""

from __future__ import annotations

import shlex
from pathlib import Path

from modules.fleet.problem import shown
from modules.spec.fleet import ResolvedHost

_CONSOLE = "ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub"


# By how the error starts; the first that fits counts.
_ADVICE = {
    "Could not resolve hostname": (
        "{address} is no name that this machine knows: correct the address of {here}, or your DNS"
    ),
    "Could not connect": (
        "nothing lets us in at {place}: {up}? Else correct address and ssh.port of {here}; try: {login}"
    ),
    "Authentication error": (
        "{user} is not let in with {key}: correct ssh.user or ssh.key of {here}, or add the key: {copy}, "
        "or by a password: make bootstrap"
    ),
    "SSH host key error": (
        "the host shows another key than {known} holds. If it was installed anew: {forget}, then {renew}. "
        "If not, another machine answers in its place: do not go on"
    ),
    "SSH error (StrictPolicy": "{known} has no key of this host: {renew}",
    "EOF error": (
        "the connection ended at once, or {key} has a passphrase: give that one to your SSH agent (ssh-add) and leave "
        "ssh.key out of {here}; try: {login}"
    ),
    "SSH error": "what answers at {place} is no sshd in order: correct address and ssh.port of {here}; try: {login}",
}


def is_of_the_connection(said: str) -> bool:
    """Whether an error says that a host was not reached."""
    return any(said.startswith(starts) for starts in _ADVICE)


def advice(said: str, host: ResolvedHost, fleet: Path) -> str | None:
    """What to do about an error of pyinfra's SSH connector; None where `said` is another error.

    `fleet`: the fleet file.
    """
    words = next((words for starts, words in _ADVICE.items() if said.startswith(starts)), None)
    if words is None:
        return None
    simulated = host.settings.hardware.simulated
    return words.format(
        address=host.address,
        place=f"{host.address} port {host.ssh.port}",
        here=f"hosts.{host.name} in {shown(fleet)}",
        up="is the lab up (make lab-up)" if simulated else "is it on, and does sshd run there",
        user=host.ssh.user,
        key=f"key {_path(host.ssh.key)}" if host.ssh.key else "your SSH agent's and usual keys",
        known=_known_hosts(host),
        login=login(host),
        copy=shlex.join(["ssh-copy-id", *_options(host)]),
        forget=shlex.join(["ssh-keygen", "-R", _entry(host), "-f", _known_hosts(host)]),
        renew=_renewal(host),
    )


def login(host: ResolvedHost) -> str:
    """The command by which an operator looks for themselves."""
    return shlex.join(["ssh", *_options(host)])


def _renewal(host: ResolvedHost) -> str:
    scan = f"ssh-keyscan -p {host.ssh.port} {host.address} >> {shlex.quote(_known_hosts(host))}"
    return f"{scan}, and compare with `{_CONSOLE}` at its console"


def _entry(host: ResolvedHost) -> str:
    return host.address if host.ssh.port == 22 else f"[{host.address}]:{host.ssh.port}"


def _known_hosts(host: ResolvedHost) -> str:
    return _path(host.ssh.known_hosts) if host.ssh.known_hosts else "~/.ssh/known_hosts"


def _options(host: ResolvedHost) -> list[str]:
    ssh = host.ssh
    words = ["-F", _path(ssh.config)] if ssh.config else []
    words += ["-i", _path(ssh.key)] if ssh.key else []
    words += ["-p", str(ssh.port)] if ssh.port != 22 else []
    words += ["-o", f"UserKnownHostsFile={_path(ssh.known_hosts)}"] if ssh.known_hosts else []
    return [*words, f"{ssh.user}@{host.address}"]


def _path(path: str) -> str:
    return shown(Path(path))
