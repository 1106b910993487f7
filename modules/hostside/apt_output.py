"""What apt prints, read: what it would do, which versions there are, how far it is. Pure."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass
else:
    pass


# A Spark's driver comes with DGX OS and fits its kernel. (libnvidia-container is no driver.)
_DRIVER = re.compile(
    r"^(nvidia-(driver|dkms|open|kernel|firmware|compute|utils|headless|modprobe|fabricmanager|imex|persistenced)\b.*"
    r"|cuda-drivers.*|libnvidia-(?!container).*|linux-(modules|objects|signatures|image|headers)-.*"
    r"|xserver-xorg-video-nvidia.*)$"
)


@dataclass(frozen=True)
class Transaction:
    """What apt would do. `added`: packages that are new to the host; `changed`: name → version before; `removed`."""

    added: tuple[str, ...] = ()
    changed: tuple[tuple[str, str], ...] = ()
    removed: tuple[str, ...] = ()

    @property
    def drivers(self) -> list[str]:
        """The packages of the GPU's driver, or of a kernel, that would come, change or go."""
        names = (*self.added, *(name for name, _ in self.changed), *self.removed)
        return sorted(name for name in names if _DRIVER.match(name))


def transaction(simulation: str) -> Transaction:
    """Read the output of `apt-get -s install`."""
    added, changed, removed = [], [], []
    for line in simulation.splitlines():
        found = re.match(r"(Inst|Remv) (\S+?)(?::\w+)?(?: \[([^]]*)\])?(?: |$)", line)
        if found is None:
            continue
        action, name, before = found.groups()
        if action == "Remv":
            removed.append(name)
        elif before is None:
            added.append(name)
        else:
            changed.append((name, before))
    return Transaction(tuple(added), tuple(changed), tuple(removed))


def versions(madison: str) -> list[str]:
    """Read the versions from `apt-cache madison`, newest first."""
    rows = [[cell.strip() for cell in line.split("|")] for line in madison.splitlines()]
    return list(dict.fromkeys(row[1] for row in rows if len(row) == 3 and "Sources" not in row[2].split()))


def matching(found: Iterable[str], wanted: str) -> str | None:
    """The first version that `wanted`, a version or a pattern with `*`, stands for."""
    return next((version for version in found if fnmatch.fnmatchcase(version, wanted)), None)


def percentage(status_line: str) -> tuple[str, float] | None:
    """What apt does and how much of it is done, from a line of its status pipe."""
    kind, _, rest = status_line.partition(":")
    steps = {"dlstatus": "downloading packages", "pmstatus": "unpacking and configuring"}
    try:
        return (steps[kind], float(rest.split(":")[1])) if kind in steps else None
    except (IndexError, ValueError):
        return None
