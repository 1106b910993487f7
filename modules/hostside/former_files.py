"""Files that were on this host before Tinderbox, and how they are had again.

    /var/lib/tinderbox/undo/files/<path>          the file
    /var/lib/tinderbox/undo/files/<path>.absent   there was none

A record goes once its file is as it was: what is written there afterwards is kept anew by the next deploy.
"""

from __future__ import annotations

import filecmp
import json
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.atomic import read_json
    from modules.hostside.removal import unmerged
else:
    from atomic import read_json
    from removal import unmerged

UNDO = Path("/var/lib/tinderbox/undo/files")
DAEMON = Path("/etc/docker/daemon.json")
_ABSENT = ".absent"
# Folders that come with a file of ours; others are their owners'.
_PARENTS = (".service.d", ".slice.d", ".socket.d")


@dataclass(frozen=True)
class Former:
    """`kept`: the record. `path`: of the file on the host, below `root`, which differs from / only in tests."""

    kept: Path
    path: Path

    @property
    def was_there(self) -> bool:
        """Whether there was a file."""
        return not self.kept.name.endswith(_ABSENT)

    @property
    def is_as_before(self) -> bool:
        """Whether nothing need be done but to forget the record."""
        if not self.was_there:
            return not self.path.exists()
        return self.path.is_file() and filecmp.cmp(self.path, self.kept, shallow=False)


def formers(undo: Path = UNDO, root: Path = Path("/")) -> list[Former]:
    """All records, by path."""
    found = []
    for kept in sorted(path for path in undo.rglob("*") if path.is_file() and not _is_half(path)):
        place = kept.relative_to(undo)
        name = kept.name.removesuffix(_ABSENT)
        found.append(Former(kept, root / place.with_name(name)))
    return found


def _is_half(path: Path) -> bool:
    # As a run that was cut left it (managed_files.py).
    return ".new." in path.name


def have_back(one: Former) -> None:
    """Have it as it was, and forget the record."""
    if not one.is_as_before:
        if one.path.name == DAEMON.name and one.path.parent.name == DAEMON.parent.name and one.path.exists():
            _daemon(one)
        elif one.was_there:
            _copied(one)
        else:
            one.path.unlink(missing_ok=True)
    _drop_parents(one)
    one.kept.unlink(missing_ok=True)


def _copied(one: Former) -> None:
    """Bytes, mode, owner and times as they were kept."""
    fresh = one.path.with_name(f".{one.path.name}.tinderbox")
    one.path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(one.kept, fresh)
    there = one.kept.stat()
    shutil.chown(fresh, there.st_uid, there.st_gid)
    fresh.replace(one.path)


def _daemon(one: Former) -> None:
    """Its owner may have written there since: then only what is ours goes."""
    now, had = read_json(one.path), read_json(one.kept) if one.was_there else None
    if now is None:
        return  # dockerd can not read it either, so it is not as Tinderbox left it
    left: dict[str, Any] = unmerged(now, had)
    if left == (had or {}):
        _copied(one) if one.was_there else one.path.unlink()
        return
    fresh = one.path.with_name(f".{one.path.name}.tinderbox")
    fresh.write_text(json.dumps(left, indent=4) + "\n", encoding="utf-8")
    shutil.copystat(one.path, fresh)
    fresh.replace(one.path)


def _drop_parents(one: Former) -> None:
    folder = one.path.parent
    if not one.was_there and (folder.name.endswith(_PARENTS) or folder.parent.name == "certs.d"):
        with suppress(OSError):
            folder.rmdir()
            if folder.parent.name == "certs.d":
                folder.parent.rmdir()
