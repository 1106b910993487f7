"""How the owner comes in: a key, sudo that asks nothing, the docker group."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Generator

from pyinfra import host
from pyinfra.api import QuoteString, StringCommand, operation

from modules.facts.access import Access
from modules.facts.files import FileStates
from modules.operations.differences import differs, files_differ
from modules.operations.managed_files import ManagedFile, settle, unsettled
from modules.operations.require import unreadable

# What Tinderbox runs by sudo: pyinfra's commands (sh -c), the gatherer of preflight (python3), and the question whether
# sudo asks (true). Who may run sh as root may do anything: this keeps accidents apart, and no one out.
LISTED = ("/bin/sh", "/usr/bin/sh", "/usr/bin/python3", "/usr/bin/true")
# Whom Tinderbox has put into group docker, a user a line.
DOCKER_GROUP = "/var/lib/tinderbox/undo/docker-group"
MARK = "tinderbox:"
_ADMIT = (
    'set -e; umask 077; mkdir -p "$HOME/.ssh"; file="$HOME/.ssh/authorized_keys";'
    ' if test -f "$file" && grep -v \'^[[:space:]]*#\' "$file" | grep -qF -- "$1"; then exit 0; fi;'
    ' file="$(readlink -f "$file")"; fresh="$(mktemp "$file.tinderbox-XXXXXXXX")";'
    " trap 'rm -f \"$fresh\"' EXIT; trap 'exit 2' HUP INT TERM;"
    ' if test -f "$file"; then cat "$file" > "$fresh"; chmod --reference="$file" "$fresh"; fi;'
    ' if test -n "$(tail -c 1 "$fresh")"; then echo >> "$fresh"; fi;'
    ' printf "%s\\n" "$2" >> "$fresh"; mv -f "$fresh" "$file"'
)
_CHECKED = 'printf "%s  %s\\n" "$1" "$2" | sha256sum --check --status && visudo -cf "$2" >&2'
_JOIN = (
    'set -e; mkdir -p "$(dirname "$2")"; groupadd --system --force docker;'
    ' if ! grep -qxF -- "$1" "$2" 2>/dev/null; then echo "$1" >> "$2"; fi; usermod --append --groups docker "$1"'
)


def key_of(line: str) -> str:
    """`type base64` of a line of a public key."""
    return " ".join(line.split()[:2])


def admission(line: str) -> tuple[str, ...]:
    """The words of the command that adds a public key to the user's own authorized_keys, unless it is there.

    The line says in its comment that we put it there: so it can be told from the owner's own, and be taken away.
    """
    kind, text, *comment = line.split(maxsplit=2)
    return ("sh", "-c", _ADMIT, "admit", f"{kind} {text}", " ".join([kind, text, MARK, *comment]))


def sudoers_file(user: str, sudo: str) -> ManagedFile:
    """The rule by which sudo asks this user nothing. `sudo`: `listed` or `all`.

    Sudo passes over files whose name has a dot; what is written must be what visudo has seen whole.
    """
    commands = "ALL" if sudo == "all" else ", ".join(LISTED)
    runas = "(ALL:ALL)" if sudo == "all" else "(root)"
    named = re.sub(r"([^\w.-])", r"\\\1", user)
    rule = f"{named} ALL={runas} NOPASSWD: {commands}"
    text = f"# Placed by Tinderbox (deploys/bootstrap.py), so that it needs no password.\n{rule}\n"
    digest = hashlib.sha256(text.encode()).hexdigest()
    name = re.sub(r"[^A-Za-z0-9_-]", lambda found: f"_{ord(found[0]):x}_", user)
    return ManagedFile(
        f"/etc/sudoers.d/tinderbox-{name}", text, mode="440", check=("sh", "-c", _CHECKED, "check", digest)
    )


@operation()
def key_admitted(line: str) -> Generator[StringCommand, None, None]:
    """Have the user's login take a public key. Runs without sudo: the file is the user's own.

    + line: `type base64 comment`
    """
    found = host.get_fact(Access, key=key_of(line), _sudo=False)
    if found is None:
        yield from unreadable("the user's authorized keys")
    elif found.admitted:
        host.noop("the key is there")
    else:
        differs("~/.ssh/authorized_keys", "lacks the key")
        _, _, script, *words = admission(line)
        yield StringCommand("sh -c", QuoteString(script), *(QuoteString(word) for word in words))


@operation()
def sudo_settled(sudo: str, key: str) -> Generator[StringCommand, None, None]:
    """Have sudo ask the user nothing, for what Tinderbox runs or for all.

    + sudo: `listed` or `all`
    + key: `type base64` of the public key
    """
    access = host.get_fact(Access, key=key, _sudo=False)
    if access is None:
        yield from unreadable("who is logged in")
        return
    file = sudoers_file(access.user, sudo)
    found = host.get_fact(FileStates, paths=[file.path])
    if found is None:
        yield from unreadable(file.path)
        return
    changes = [] if access.user == "root" else unsettled([file], found)
    if not changes:
        host.noop(f"{file.path} is in place")
        return
    files_differ(changes, found)
    yield from settle(changes)


@operation()
def docker_joined(key: str) -> Generator[StringCommand, None, None]:
    """Have the user in group docker, from their next login on.

    + key: `type base64` of the public key
    """
    found = host.get_fact(Access, key=key, _sudo=False)
    if found is None:
        yield from unreadable("the user's groups")
    elif found.in_docker or found.user == "root":
        host.noop("the user may use docker")
    else:
        differs("group docker", f"lacks {found.user}")
        yield StringCommand("sh -c", QuoteString(_JOIN), "join", QuoteString(found.user), DOCKER_GROUP)
