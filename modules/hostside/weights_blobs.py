"""A model's files on this host between the first byte and the day that others can see them.

What is under way lies beside the hub client's blobs under a name of its own, is hashed when it is whole, and gets its
blob's name only then: whoever finds a blob finds the right one.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.atomic import write_json, write_text
    from modules.hostside.checkpoint import structure
    from modules.hostside.hashing import OnBytes
    from modules.hostside.weights_before import note
    from modules.hostside.weights_hashes import difference, in_parallel
    from modules.hostside.weights_stamp import (
        Repository,
        WantedFile,
        read_stamp,
        stamped_files,
        strays,
        suspects,
        write_stamp,
    )
else:
    from atomic import write_json, write_text
    from checkpoint import structure
    from hashing import OnBytes
    from weights_before import note
    from weights_hashes import difference, in_parallel
    from weights_stamp import Repository, WantedFile, read_stamp, stamped_files, strays, suspects, write_stamp

# The client's own name for what is not whole, so that `hf cache prune` knows it.
HUB_PART, PEER_PART = ".tinderbox-hub.incomplete", ".tinderbox-peer.incomplete"
_ASIDE = "tinderbox-set-aside"
# The formats of the client's listing of a commit that this writes.
_TREE_FORMAT = 1
# A client that is at work writes all the time.
_ORPHAN_S = 3600
# Of a shard that is lacking, every tensor is.
_SHOWN = 3
_GIB = 1024**3


class GiveUpError(Exception):
    """The reason why this host has not got the model."""


def part_of(repository: Repository, file: WantedFile, kind: str) -> Path:
    """Where a file's content is gathered; `kind`: `HUB_PART`, filled from its start, or `PEER_PART`, with gaps."""
    blob = repository.blob(file)
    return blob.with_name(blob.name + kind)


def lacking(repository: Repository, files: Iterable[WantedFile]) -> list[WantedFile]:
    """The files whose content is not there yet, each content once."""
    return list({file.digest: file for file in files if not repository.blob(file).exists()}.values())


def missing_bytes(repository: Repository, files: Iterable[WantedFile]) -> int:
    """How many bytes of disk the files still need. What was gathered of them is counted by what it really occupies."""

    def allocated(file: WantedFile) -> int:
        parts = (part_of(repository, file, kind) for kind in (HUB_PART, PEER_PART))
        return max((part.stat().st_blocks * 512 for part in parts if part.exists()), default=0)

    return sum(max(0, file.size - allocated(file)) for file in lacking(repository, files))


def require_space(repository: Repository, files: Iterable[WantedFile], reserve_bytes: int) -> None:
    """Refuse before the first byte what the disk can not hold."""
    need = missing_bytes(repository, files)
    free = shutil.disk_usage(repository.home).free
    if need and free < need + reserve_bytes:
        raise GiveUpError(
            f"{repository.home} has {free / _GIB:.1f} GiB free; {repository.name} needs "
            f"{need / _GIB:.1f} GiB more and {reserve_bytes / _GIB:.1f} GiB must remain "
            "(hardware.reserve_disk_gib): make room, or set weights.home to a larger disk"
        )


def check_present(repository: Repository, commit: str, files: list[WantedFile], on_bytes: OnBytes) -> list[str]:
    """Hash what is there and no stamp vouches for; set aside what is wrong. Says which it was and where it is kept.

    What was there before the first time is noted first.
    """
    note(repository)
    snapshot = repository.snapshot(commit)
    for file in files:
        _adopt(repository, snapshot / file.path, file)
    found = strays(repository, commit, files)
    notes = [f"{path}: the hub publishes no such file; {_away(repository, path)}" for path in found]
    stamp = read_stamp(repository, commit)
    doubted = set(files) if stamp is None else suspects(stamp) | (set(files) - set(stamped_files(stamp)))
    present = {file.digest: file for file in files if repository.blob(file).exists()}
    for file in present.values():
        if file not in doubted:
            on_bytes(file.size)

    def judge(file: WantedFile) -> str | None:
        return difference(repository.blob(file), file, on_bytes=on_bytes, shown=snapshot / file.path)

    wrong = in_parallel(judge, (file for file in present.values() if file in doubted))
    return notes + [f"{what}; {set_aside(repository, repository.blob(file), file)}" for file, what in wrong.items()]


def _away(repository: Repository, stray: Path) -> str:
    """Put a file that is not of the model where no engine finds it."""
    kept = _aside(repository) / stray.name
    stray.replace(kept)
    return f"it is kept as {kept}"


def _aside(repository: Repository) -> Path:
    aside = repository.home / _ASIDE / repository.folder.name
    aside.mkdir(parents=True, exist_ok=True)
    return aside


def _adopt(repository: Repository, entry: Path, file: WantedFile) -> None:
    """Of a cache without links, make the file itself the blob; it is hashed like any other."""
    blob = repository.blob(file)
    if entry.is_file() and not entry.is_symlink() and not blob.exists():
        blob.parent.mkdir(parents=True, exist_ok=True)
        entry.replace(blob)


def check_parts(
    repository: Repository,
    files: Iterable[WantedFile],
    kind: str,
    on_bytes: OnBytes,
    *,
    rename: Callable[[Path, Path], object] = Path.replace,
    found: Mapping[str, str] | None = None,
) -> list[str]:
    """Hash what was gathered, and make a blob of each that is right; says what is wrong with the others.

    `found`: digest → that of the content, where it was hashed as it came. What it says to be wrong is read again.
    """
    files = list(files)

    def judge(file: WantedFile) -> str | None:
        part = part_of(repository, file, kind)
        if (found or {}).get(file.digest) == file.digest and part.stat().st_size == file.size:
            on_bytes(file.size)
            return None
        return difference(part, file, on_bytes=on_bytes, shown=Path(file.path))

    wrong = in_parallel(judge, files)
    for file in files:
        if file not in wrong:
            _settle(part_of(repository, file, kind), repository.blob(file), rename)
    return [f"{what}; {set_aside(repository, part_of(repository, file, kind), file)}" for file, what in wrong.items()]


def _settle(part: Path, blob: Path, rename: Callable[[Path, Path], object]) -> None:
    """Give a whole and right file its name, durable when this returns."""
    with part.open("rb") as file:
        os.fsync(file.fileno())
    rename(part, blob)
    folder = os.open(blob.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def set_aside(repository: Repository, path: Path, file: WantedFile) -> str:
    """Take a wrong file away from where the client would trust it, and keep it; says what became of it."""
    kept = _aside(repository) / f"{Path(file.path).name}.{file.digest[:12]}"
    there = Path(os.path.realpath(path))
    if not there.exists():
        return "nothing of it is there"
    there.replace(kept)
    path.unlink(missing_ok=True)
    return f"what was there is kept as {kept}"


def publish(
    repository: Repository,
    revision: str,
    commit: str,
    files: list[WantedFile],
    *,
    filters: dict[str, list[str]],
    tree: Mapping[str, object] | None,
) -> None:
    """Let others find what was verified: links, listing, the revision's name, the owner of the home, the stamp.

    `tree`: the hub's listing of the whole commit, in the client's own format; None: it is there already. Raises
    `GiveUpError`, and leaves no stamp, where the files are right one by one but make no checkpoint.
    """
    for file in files:
        _link(repository, repository.snapshot(commit) / file.path, file)
    if tree is not None:
        listing = repository.tree(commit)
        listing.parent.mkdir(parents=True, exist_ok=True)
        write_json(listing, {"format_version": _TREE_FORMAT, "files": tree})
    if revision != commit:
        reference = repository.reference(revision)
        reference.parent.mkdir(parents=True, exist_ok=True)
        write_text(reference, commit)
    clear(repository)
    _give_to_owner(repository)
    _require_structure(repository, commit)
    write_stamp(repository, commit, filters, files, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))


def _require_structure(repository: Repository, commit: str) -> None:
    faults = structure(repository.snapshot(commit))
    if faults:
        more = f"; and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
        raise GiveUpError(
            f"{repository.name}@{commit}: every file is as its hub publishes it, but no engine can load them: "
            f"{'; '.join(faults[:_SHOWN])}{more}. Check the model's `include` and `exclude`; else it was published so"
        )


def _give_to_owner(repository: Repository) -> None:
    """Have the model belong to whom the home belongs to, who could not remove it, or fetch others beside it, else.

    A file that has another name, too, is another cache's as well (link_weights.py), and keeps its owner.
    """
    owner = repository.home.stat()
    folder, beside = repository.folder, repository.home / _ASIDE
    for path in (folder.parent, folder, *folder.rglob("*"), *([beside, *beside.rglob("*")] if beside.exists() else [])):
        found = path.lstat()
        if found.st_uid != owner.st_uid and (stat.S_ISDIR(found.st_mode) or found.st_nlink == 1):
            os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


@contextmanager
def alone(repository: Repository) -> Iterator[None]:
    """Keep another job for the same model (for another service, say) waiting."""
    repository.folder.mkdir(parents=True, exist_ok=True)
    with (repository.folder / ".tinderbox.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def clear(repository: Repository) -> None:
    """Remove what was gathered, and what a client that was killed long ago left behind."""
    for part in (repository.folder / "blobs").glob("*.incomplete"):
        ours = part.name.endswith((HUB_PART, PEER_PART))
        try:
            if ours or time.time() - part.stat().st_mtime > _ORPHAN_S:
                part.unlink()
        except FileNotFoundError:
            continue


def _link(repository: Repository, entry: Path, file: WantedFile) -> None:
    target = os.path.relpath(repository.blob(file), entry.parent)
    if entry.is_symlink() and str(entry.readlink()) == target:
        return
    entry.parent.mkdir(parents=True, exist_ok=True)
    beside = entry.with_name(f".{entry.name}.tinderbox")
    beside.unlink(missing_ok=True)
    beside.symlink_to(target)
    beside.replace(entry)
