"""Packages that came by Tinderbox (undo/packages.json), and which of them can go without taking another's with them.

Nothing is ever removed that Tinderbox did not add. What something else needs by now, or somebody has asked apt for
since, stays.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.atomic import read_json, write_json
else:
    from atomic import read_json, write_json

NOTES = Path("/var/lib/tinderbox/undo/packages.json")
_ENVIRONMENT = {"DEBIAN_FRONTEND": "noninteractive", "NEEDRESTART_SUSPEND": "1", "LC_ALL": "C"}
# Their data goes with them, where it is theirs alone.
DOCKER = "docker.io"

Simulate = Callable[[Collection[str]], set[str]]


@dataclass(frozen=True)
class Asked:
    """A package that Tinderbox asked for. `added`: that came; `before`: package → version that it had before."""

    name: str
    added: tuple[str, ...]
    before: tuple[tuple[str, str], ...]


def asked(notes: Path = NOTES) -> list[Asked]:
    """All of them, by name."""
    found: Mapping[str, Any] = read_json(notes) or {}
    return [
        Asked(name, tuple(map(str, one.get("added") or ())), tuple(sorted((one.get("before") or {}).items())))
        for name, one in sorted(found.items()) if isinstance(one, dict)
    ]  # fmt: skip


def run(*command: str) -> tuple[int, str]:
    """Exit status and all that apt said."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        env={**os.environ, **_ENVIRONMENT},
    )  # fmt: skip
    return done.returncode, done.stdout


def simulated(packages: Collection[str]) -> set[str]:
    """What apt would remove with them. Raises `OSError`: apt can not tell."""
    code, said = run("apt-get", "-s", "purge", *sorted(packages))
    if code != 0:
        raise OSError(f"apt can not tell what would go with {', '.join(sorted(packages))}: {said.strip()[-300:]}")
    return set(re.findall(r"^(?:Purg|Remv) (\S+?)(?::\w+)? ", said, re.MULTILINE))


def present(packages: Iterable[str]) -> set[str]:
    """Those that dpkg knows: installed, or with settings left."""
    _, said = run("dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\\n", *packages)
    rows = (line.split() for line in said.splitlines())
    return {row[0] for row in rows if len(row) == 2 and row[1] not in {"not-installed"}}


def manual() -> set[str]:
    """Those that somebody has asked apt for."""
    return set(run("apt-mark", "showmanual")[1].split())


def separated(
    added: Collection[str],
    names: Collection[str],
    by_hand: Collection[str],
    simulate: Simulate,
    used: Mapping[str, str] = MappingProxyType({}),
) -> tuple[set[str], dict[str, str]]:
    """Which of `added` can go, and package → why the others stay.

    `names`: those that Tinderbox itself asked apt for. `by_hand`: that somebody has asked apt for. `used`: package →
    who else needs what came with it; what such a package stands on stays with it.
    """
    staying = {name: "somebody has asked apt for it since" for name in added if name in by_hand and name not in names}
    staying |= {name: why for name, why in used.items() if name in added}
    going = set(added) - set(staying)
    while going:
        others = simulate(going) - going
        if not others:
            break
        # One at a time: which of them is it that something else needs?
        needed = {name: simulate([name]) & (others | set(staying)) for name in going}
        held = {name: found for name, found in needed.items() if found}
        if not held:
            return set(), staying | dict.fromkeys(going, f"{', '.join(sorted(others))} would go with it")
        staying |= {name: f"{', '.join(sorted(found))} needs it" for name, found in held.items()}
        going -= set(held)
    return going, staying


def purge(packages: Collection[str], names: Collection[str], notes: Path = NOTES) -> None:
    """Have them gone, with their settings; forget the notes of `names`. Raises `OSError`: apt could not do it."""
    there = present(packages) if packages else set()
    if there:
        code, said = run("apt-get", "-y", "-o", "DPkg::Lock::Timeout=300", "purge", *sorted(there))
        if code != 0:
            raise OSError(f"apt-get purge {' '.join(sorted(there))} failed: {said.strip()[-600:]}")
    left = {name: one for name, one in (read_json(notes) or {}).items() if name not in names}
    if notes.exists():
        write_json(notes, left)
