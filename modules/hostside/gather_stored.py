"""What is on this machine's disks already: sent to a host together with gather.py, which calls it.

Runs on every Python from 3.7 on.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

_PROGRAMS = "/usr/local/lib/tinderbox"
_IMAGES = Path("/var/lib/tinderbox/images")


def text_of(path: str | Path) -> str | None:
    """The text of a file, None where none can be read."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def disk(path: str) -> dict[str, Any]:
    """The file system that `path` is on, or would be on once it is made."""
    there = Path(path)
    while not there.exists():
        there = there.parent
    mount = there.resolve()
    while not mount.is_mount():
        mount = mount.parent
    size = os.statvfs(there)
    return {
        "mount": str(mount),
        "device": there.stat().st_dev,
        "free": size.f_bavail * size.f_frsize,
        "total": size.f_blocks * size.f_frsize,
    }


def bytes_in(directory: Path, wanted: Callable[[str], bool]) -> int:
    """What the files under `directory` that are wanted take on the disk; links are followed, no file counts twice."""
    seen = {}
    for folder, _, files in os.walk(directory):
        for name in filter(wanted, files):
            try:
                entry = (Path(folder) / name).stat()
            except OSError:
                continue
            seen[entry.st_dev, entry.st_ino] = entry.st_blocks * 512
    return sum(seen.values())


def model(directory: str, revision: str, file: str | None = None) -> dict[str, Any]:
    """What is here of a model: its snapshot's files, and pieces of a cut download, whose space the next one has."""
    cache = Path(directory)
    commit = (text_of(cache / "refs" / revision) or revision).strip()
    return {
        "snapshot": bytes_in(cache / "snapshots" / commit, lambda name: True),
        "pieces": bytes_in(cache / "blobs", lambda name: name.endswith(".incomplete")),
        "checkpoint": checkpoint(cache / "snapshots" / commit, file),
    }


def checkpoint(snapshot: Path, file: str | None) -> dict[str, Any] | None:
    """What our own program says of a snapshot by its headers; None before it, or the snapshot, is there."""
    if not snapshot.is_dir() or not Path(_PROGRAMS, "checkpoint.py").exists():
        return None
    # Bytecode would lie there as what is not ours.
    sys.dont_write_bytecode = True
    sys.path.insert(0, _PROGRAMS)
    try:
        program: Any = importlib.import_module("checkpoint")
        found: dict[str, Any] = program.summarize(snapshot, file)
    except Exception:  # whatever it is, the stage that serves says it
        return None
    finally:
        sys.path.remove(_PROGRAMS)
    return found


def sizes_in(folder: Path) -> dict[str, int]:
    """File → bytes, of a folder that may not be there."""
    return {path.name: path.stat().st_size for path in folder.iterdir()} if folder.is_dir() else {}


def build_seconds() -> dict[str, float]:
    """Recipe → what its steps took in builds on this host, altogether."""
    found = {}
    for path in _IMAGES.glob("*.times.json"):
        try:
            found[path.name[: -len(".times.json")]] = sum(json.loads(path.read_text())["steps"].values())
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
    return found
