"""Write a bundle file by file, so that an export that was cut goes on where it ended and never looks whole."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.bundle import FORMAT, MANIFEST, UNFINISHED, BundleError
    from modules.hostside.hashing import OnBytes
else:
    from bundle import FORMAT, MANIFEST, UNFINISHED, BundleError
    from hashing import OnBytes


class BundleWriter:
    """The bundle at `root`. `files`: path → what the manifest says of it, of those that are whole.

    `of` there tells what a file was made from: another source is written anew.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files: dict[str, dict[str, Any]] = {}
        self.tools: str | None = None

    def begin(self) -> None:
        """Take up what is there. From now on it is not whole."""
        if not self.root.parent.is_dir():
            raise BundleError(f"there is no {self.root.parent} on this host: is the disk mounted there?")
        self.root.mkdir(exist_ok=True)
        if (self.root / MANIFEST).exists():
            (self.root / MANIFEST).replace(self.root / UNFINISHED)
        try:
            known = json.loads((self.root / UNFINISHED).read_text(encoding="utf-8"))
            files = {file["path"]: file for file in known["files"]}
        except (OSError, ValueError, KeyError, TypeError):
            return
        self.files = {path: file for path, file in files.items() if self._has(path, file["size"])}
        self.tools = known.get("tools") if len(self.files) == len(files) else None

    def has(self, path: str, of: str) -> bool:
        """Whether a file is there, whole, and made from this very source."""
        return self.files.get(path, {}).get("of") == of

    def write(self, path: str, of: str, pieces: Iterable[bytes], on_bytes: OnBytes = lambda _: None) -> None:
        """Write a file whole or not at all. Raises `BundleError` where the disk does not take it."""
        beside = self.root / f"{path}.part"
        found, size = hashlib.sha256(), 0
        with disk_takes(beside):
            beside.parent.mkdir(parents=True, exist_ok=True)
            with beside.open("wb") as file:
                for piece in pieces:
                    file.write(piece)
                    found.update(piece)
                    size += len(piece)
                    on_bytes(len(piece))
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self.root / path)
        self.add(path, of, size, found.hexdigest())

    def add(self, path: str, of: str, size: int, sha256: str) -> None:
        """Note a file that is whole."""
        self.files[path] = {"path": path, "of": of, "size": size, "sha256": sha256}
        self.note({})

    def keep_only(self, paths: Iterable[str]) -> None:
        """Remove what an earlier export wrote and this one does not want."""
        for path in set(self.files) - set(paths):
            (self.root / path).unlink(missing_ok=True)
            del self.files[path]

    def note(self, more: dict[str, Any]) -> Path:
        """Write down how far it is; the file that says so."""
        files = [self.files[path] for path in sorted(self.files)]
        document = {"format": FORMAT, "tools": self.tools, **more, "files": files}
        unfinished = self.root / UNFINISHED
        self._put(unfinished, json.dumps(document, indent=1, sort_keys=True) + "\n")
        return unfinished

    def finish(self, more: dict[str, Any]) -> None:
        """It is whole: this is the last step."""
        self.note(more).replace(self.root / MANIFEST)

    def _put(self, path: Path, text: str) -> None:
        beside = path.with_name(f"{path.name}.new")
        with disk_takes(beside):
            with beside.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)

    def _has(self, path: str, size: int) -> bool:
        try:
            return (self.root / path).stat().st_size == size
        except OSError:
            return False


@contextmanager
def disk_takes(beside: Path) -> Iterator[None]:
    """Leave no piece of a file behind; say in words why a disk does not take it."""
    try:
        yield
    except BaseException as error:
        beside.unlink(missing_ok=True)
        number = error.errno if isinstance(error, OSError) else None
        if number == errno.ENOSPC:
            raise BundleError(
                f"{beside.parent}: the disk is full; make room, and run deploys/bundle.py again"
            ) from None
        if number == errno.EFBIG:
            raise BundleError(
                f"{beside.parent}: its file system takes no file this large (FAT32?): use exFAT or ext4"
            ) from None
        raise
