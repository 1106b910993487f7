"""One run at a time per fleet, on this machine: a lock that names its holder and does not survive it.

The lock is the kernel's (flock), so that a holder that dies, however it does, holds nothing any more. It lies where
every user of the machine can come (`shared_folder`), since two people may change one fleet from two checkouts. Runs
from other machines are kept apart by the hosts: see `modules.operations.host_hold`.
"""

from __future__ import annotations

import fcntl
import getpass
import hashlib
import os
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from modules.converge.holder import refused_text
from modules.converge.process import pass_on
from modules.fleet import Fleet
from modules.fleet.shared import shared_folder
from modules.spec.holder import HOLD, HOLDER, LOCK, Holder, parse_holder

_LONGEST = 4096
# Of this start of this machine, and of no other.
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class HeldError(Exception):
    """Another run holds the fleet; the text says who, since when, and what to do."""


def lock_name(fleet: Fleet) -> str:
    """The lock's file: by the fleet's name and by where its hosts are, so that it is the same from every checkout."""
    places = sorted(f"{host.address}:{host.ssh.port}" for host in fleet.hosts.values())
    digest = hashlib.sha256("\n".join(places).encode()).hexdigest()[:8]
    return f"tinderbox-{re.sub(r'[^a-z0-9-]', '-', fleet.name)}-{digest}.lock"


def lock_identity(path: Path) -> str:
    """Tells this lock from those of all other controllers, where the same fleet's has the same name.

    Hosts go by it: who comes with the same one has this very file locked, so whoever did before is gone.
    """
    there = path.stat()
    try:
        machine = _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        machine = socket.gethostname()
    return f"{path.name} {machine} {there.st_dev}:{there.st_ino}"


@contextmanager
def held(fleet: Fleet, deploy: str, *, within: Path | None = None) -> Iterator[Holder | None]:
    """Hold the fleet while this lasts. Yields the last holder where that ended without giving it back.

    The processes that this one starts by `modules.converge.process` hold it too: a run whose wrapper was killed alone
    still is one.

    Raises `HeldError`: another run holds it, or the lock can not be made.
    """
    if os.environ.get(HOLD) == "0":
        yield None
        return
    path = (within or shared_folder()) / lock_name(fleet)
    try:
        lock = _opened(path)
    except OSError as error:
        raise HeldError(f"the fleet's lock {path} can not be opened: {error.strerror}; remove that file") from error
    with os.fdopen(lock, "r+", encoding="utf-8", errors="replace") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = parse_holder(file.read(_LONGEST))
            alive = holder is not None and _is_alive(holder.pid)
            raise HeldError(refused_text(fleet.name, holder, str(path), alive=alive, now=time.time())) from None
        before = parse_holder(file.read(_LONGEST))
        holder = _this_run(fleet, deploy)
        _write(file.fileno(), holder.document())
        try:
            with pass_on(file.fileno(), {LOCK: lock_identity(path), HOLDER: holder.document()}):
                yield before
        finally:
            # Emptied, not removed: whoever opened it meanwhile would lock a file that nobody else finds.
            _write(file.fileno(), "")


def _opened(path: Path) -> int:
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        # Without O_CREAT: in a folder for all, Linux refuses that on the file of another user.
        return os.open(path, flags)
    except FileNotFoundError:
        pass
    try:
        lock = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        return os.open(path, flags)
    os.fchmod(lock, 0o666)
    return lock


def _write(lock: int, text: str) -> None:
    os.ftruncate(lock, 0)
    os.pwrite(lock, text.encode(), 0)


def _this_run(fleet: Fleet, deploy: str) -> Holder:
    return Holder(_user(), socket.gethostname(), os.getpid(), deploy, time.time(), str(fleet.path.resolve()))


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in some containers
        return str(os.getuid())


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # another user's
    return True
