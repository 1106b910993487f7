"""What the files of a model hash to, and which are not what they should be."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.hashing import OnBytes, hash_of_file
    from modules.hostside.weights_stamp import WantedFile
else:
    from hashing import OnBytes, hash_of_file


def hub_hash(size: int, *, lfs: bool) -> hashlib._Hash:
    """The beginning of a file's hash in the hub's way."""
    # Not used against an attacker: it is what git calls a blob's id.
    return hashlib.sha256() if lfs else hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)


def digest(path: Path, *, lfs: bool, on_bytes: OnBytes = lambda _: None) -> str:
    """A file's hash in the hub's way. Raises `OSError` where it can not be read."""
    return hash_of_file(path, hub_hash(path.stat().st_size, lfs=lfs), on_bytes)


def difference(path: Path, file: WantedFile, *, on_bytes: OnBytes, shown: Path) -> str | None:
    """How the content of `path` differs from what the hub publishes; None where it does not. `shown`: what to call it.

    Raises `OSError` where it can not be read.
    """
    try:
        size = path.stat().st_size
        if size != file.size:
            return f"{shown}: {size} bytes, the hub publishes {file.size}"
        found = digest(path, lfs=file.lfs, on_bytes=on_bytes)
    except FileNotFoundError:
        return f"{shown}: missing"
    kind = "sha256" if file.lfs else "git blob"
    return None if found == file.digest else f"{shown}: {kind} {found}, the hub publishes {file.digest}"


def in_parallel(judge: Callable[[WantedFile], str | None], files: Iterable[WantedFile]) -> dict[WantedFile, str]:
    """What `judge` says against files, asked on all cores."""
    # The largest first, so that no core is left with one at the end.
    ordered = sorted(files, key=lambda file: file.size, reverse=True)
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        return {file: text for file, text in zip(ordered, pool.map(judge, ordered), strict=True) if text is not None}


def broken(snapshot: Path, files: Iterable[WantedFile], on_bytes: OnBytes) -> dict[WantedFile, str]:
    """The files whose content is not what the hub publishes, each with what is wrong. Hashes on all cores."""

    def judge(file: WantedFile) -> str | None:
        path = snapshot / file.path
        return difference(path, file, on_bytes=on_bytes, shown=path)

    return in_parallel(judge, files)
