"""Whether the kernel lets as many hosts run on this machine: each one's programs watch files by inotify."""

from __future__ import annotations

import contextlib
from pathlib import Path

from modules.lab.errors import LabError

# Counted on lab hosts in use: systemd 5, dbus-daemon, systemd-logind and containerd one each.
PER_HOST = 8
_LIMIT = Path("/proc/sys/fs/inotify/max_user_instances")


def need_watches(hosts: int) -> None:
    """Make sure that `hosts` more lab hosts can boot.

    Raises:
        LabError: the kernel's limit is too low. A host would come up without services, and not say why.

    """
    with contextlib.suppress(OSError, ValueError):
        problem = shortfall(hosts, limit=int(_LIMIT.read_text()), used=_used())
        if problem is not None:
            raise LabError(problem)


def shortfall(hosts: int, *, limit: int, used: int) -> str | None:
    """What is wrong and what to do where `hosts` more would not fit; None where they do."""
    needed = used + hosts * PER_HOST
    if needed <= limit:
        return None
    enough = 1 << (needed - 1).bit_length()
    return (
        f"{hosts} more lab hosts need {hosts * PER_HOST} inotify instances; {used} of this machine's {limit} are in "
        f"use: run `sudo sysctl fs.inotify.max_user_instances={enough}`, or start fewer hosts"
    )


def _used() -> int:
    """How many root has, as far as this user may see: lab hosts run as root."""
    count = 0
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            count += str(link.readlink()) == "anon_inode:inotify"
    return count
