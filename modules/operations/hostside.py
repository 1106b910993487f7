"""Our own programs on a host."""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
from collections.abc import Generator, Mapping
from functools import cache
from pathlib import Path

from pyinfra import host
from pyinfra.api import QuoteString, StringCommand, operation

from modules.facts.hostside import HOME, HostsidePrograms
from modules.facts.survey import Question
from modules.operations.differences import differs
from modules.operations.require import unreadable

_SOURCE = Path(__file__).parents[1] / "hostside"
_SHIPPED = (".py", ".lock")
PROGRAMS_THERE = Question(HostsidePrograms)


@cache
def programs() -> Mapping[str, bytes]:
    """Name → content of every program and lock that hosts get."""
    return {path.name: path.read_bytes() for path in sorted(_SOURCE.iterdir()) if path.suffix in _SHIPPED}


def archive(files: Mapping[str, bytes]) -> str:
    """A tar of the files, owned by root and readable by all, in base64."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.uname, entry.gname = len(content), 0o644, "root", "root"
            tar.addfile(entry, io.BytesIO(content))
    return base64.encodebytes(buffer.getvalue()).decode()


def difference(wanted: Mapping[str, bytes], found: Mapping[str, str]) -> tuple[dict[str, bytes], list[str]]:
    """What is to be sent, and the names of what is to be removed."""
    outdated = {
        name: content for name, content in wanted.items() if found.get(name) != hashlib.sha256(content).hexdigest()
    }
    return outdated, sorted(set(found) - set(wanted))


@operation()
def hostside_installed() -> Generator[StringCommand, None, None]:
    """Bring the host's copy of our programs to the controller's state: what differs is sent, strays are removed."""
    found = PROGRAMS_THERE.of(host)
    if found is None:
        yield from unreadable(f"the programs in {HOME}")
        return
    outdated, strays = difference(programs(), found)
    if not outdated and not strays:
        host.noop(f"{HOME} is up to date")
        return
    if not found:
        differs(HOME, "is not there")
    for name in sorted({*outdated, *strays} if found else ()):
        detail = "is not ours" if name in strays else "differs" if name in found else "is not there"
        differs(f"{HOME}/{name}", detail)
    if strays:
        yield StringCommand("cd", HOME, "&& rm -rf --", *(QuoteString(name) for name in strays))
    if outdated:
        # One round trip for all of them; a program that runs meanwhile keeps the file that it has open.
        yield StringCommand(
            "set -e; umask 022; mkdir -p",
            HOME,
            "; cd",
            HOME,
            # Two runs at once come one after the other, and look at whole files only: so what is sent arrives beside.
            "; exec 9<.; flock 9; rm -rf ../.tinderbox-incoming; mkdir ../.tinderbox-incoming;",
            "base64 -d | tar -x --no-same-owner -C ../.tinderbox-incoming;",
            "chmod 644 ../.tinderbox-incoming/*; mv -f ../.tinderbox-incoming/* .; rmdir ../.tinderbox-incoming",
            _stdin=archive(outdated),
        )
