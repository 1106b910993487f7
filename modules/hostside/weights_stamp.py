"""What is on this host of a model, and whether it is still what was verified.

A stamp is written after every file of a snapshot was hashed. It keeps each file's size, time of change and inode, so
that a later look costs a few `stat` calls and no hashing; a file that was touched since is not trusted until hashed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.atomic import read_json, write_json
else:
    from atomic import read_json, write_json

STAMPS = Path("/var/lib/tinderbox/weights")
_COMMIT = re.compile(r"^[0-9a-f]{40}$")


def is_commit(revision: str) -> bool:
    """Whether a revision is a commit, which stands for the same files for ever."""
    return _COMMIT.match(revision) is not None


@dataclass(frozen=True)
class WantedFile:
    """A file of a snapshot as the hub publishes it.

    `digest`: sha256 of a large file's content (`lfs`), git's blob id of a small one.
    """

    path: str
    size: int
    digest: str
    lfs: bool

    @property
    def line(self) -> str:
        """As a fleet's lock has it."""
        return f"{'sha256' if self.lfs else 'git'}:{self.digest} {self.size}"


@dataclass(frozen=True)
class Repository:
    """A model's place in a Hugging Face home."""

    home: Path
    name: str

    @property
    def folder(self) -> Path:
        """The model's folder in the hub cache."""
        return self.home / "hub" / f"models--{self.name.replace('/', '--')}"

    def snapshot(self, commit: str) -> Path:
        """The files of a commit."""
        return self.folder / "snapshots" / commit

    def blob(self, file: WantedFile) -> Path:
        """Where the client keeps a file's content."""
        return self.folder / "blobs" / file.digest

    def reference(self, revision: str) -> Path:
        """The file that tells what commit a branch or tag stands for."""
        return self.folder / "refs" / revision

    def tree(self, commit: str) -> Path:
        """The client's listing of a commit."""
        return self.folder / "trees" / f"{commit}.json"

    def commit(self, revision: str) -> str | None:
        """What a revision stands for on this host; None where it was never resolved here."""
        if is_commit(revision):
            return revision
        try:
            commit = self.reference(revision).read_text().strip()
        except OSError:
            return None
        return commit if is_commit(commit) else None

    def stamp(self, commit: str) -> Path:
        """The stamp of a commit in this home."""
        home = hashlib.sha256(str(self.home).encode()).hexdigest()[:8]
        return STAMPS / f"{self.name.replace('/', '--')}@{commit}.{home}.json"


def manifest_digest(files: Iterable[WantedFile]) -> str:
    """One hash for the whole snapshot."""
    lines = sorted(f"{file.digest} {file.size} {file.path}\n" for file in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def write_stamp(
    repository: Repository, commit: str, filters: dict[str, list[str]], files: Iterable[WantedFile], verified_at: str
) -> None:
    """Say that all files were hashed and found right."""
    files = list(files)
    snapshot = repository.snapshot(commit)
    STAMPS.mkdir(parents=True, exist_ok=True)
    document = {
        "repository": repository.name,
        "commit": commit,
        "snapshot": str(snapshot),
        "filters": filters,
        "manifest": manifest_digest(files),
        "verified_at": verified_at,
        "files": [asdict(file) | {"seen": _seen(snapshot / file.path)} for file in files],
    }
    write_json(repository.stamp(commit), document)


def read_stamp(repository: Repository, commit: str) -> dict[str, Any] | None:
    """The stamp, or None where there is none for this snapshot."""
    stamp = read_json(repository.stamp(commit))
    return stamp if stamp is not None and stamp.get("snapshot") == str(repository.snapshot(commit)) else None


def stamped_files(stamp: dict[str, Any]) -> list[WantedFile]:
    """The files that a stamp speaks of."""
    return [WantedFile(f["path"], int(f["size"]), f["digest"], bool(f["lfs"])) for f in stamp["files"]]


def condemn(repository: Repository, commit: str, problems: list[str]) -> None:
    """Note in the stamp what a later hashing found wrong, so that the next run does not trust it; [] takes it back."""
    stamp = read_stamp(repository, commit)
    if stamp is not None and stamp.get("broken", []) != problems:
        write_json(repository.stamp(commit), stamp | {"broken": problems})


def touched(stamp: dict[str, Any]) -> list[str]:
    """A line for each file that is no longer the one that was hashed, or was since found broken; reads no file."""
    snapshot = Path(stamp["snapshot"])
    problems = [str(line) for line in stamp.get("broken", [])]
    for file in stamp["files"]:
        path = snapshot / file["path"]
        try:
            found = _seen(path)
        except OSError:
            problems.append(f"{path}: missing")
            continue
        if found["size"] != file["seen"]["size"]:
            problems.append(f"{path}: {found['size']} bytes, was {file['seen']['size']}")
        elif found != file["seen"]:
            problems.append(f"{path}: changed since it was verified")
    return problems + stray_lines(stamp)


def stray_lines(stamp: dict[str, Any]) -> list[str]:
    """A line for each file beside those that a stamp speaks of."""
    repository = Repository(Path(stamp["snapshot"]).parents[3], stamp["repository"])
    others = strays(repository, stamp["commit"], stamped_files(stamp))
    return [f"{path}: the hub publishes no such file" for path in others]


def strays(repository: Repository, commit: str, files: Iterable[WantedFile]) -> list[Path]:
    """What lies in the snapshot beside `files` and is not in the commit: an engine might load it with the rest."""
    listed = (read_json(repository.tree(commit)) or {}).get("files")
    snapshot = repository.snapshot(commit)
    if not isinstance(listed, dict):
        return []
    known = {*listed, *(file.path for file in files)}
    entries = (path for path in snapshot.rglob("*") if path.is_symlink() or path.is_file())
    return sorted(path for path in entries if path.relative_to(snapshot).as_posix() not in known)


def suspects(stamp: dict[str, Any]) -> set[WantedFile]:
    """The files of a stamp that `touched` speaks of."""
    snapshot = Path(stamp["snapshot"])
    lines = touched(stamp)
    return {
        file for file in stamped_files(stamp) if any(line.startswith(f"{snapshot / file.path}: ") for line in lines)
    }


def _seen(path: Path) -> dict[str, int]:
    found = path.stat()
    return {"size": found.st_size, "mtime_ns": found.st_mtime_ns, "inode": found.st_ino}
