"""A model cut into pieces, as BitTorrent wants it (BEP 3, with padding as in BEP 47).

Every file begins with a piece of its own, so that no piece spans two files and a host that has a file has its pieces.
Built on the host that has the verified files; all others get hashes and sizes from the controller.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.weights_stamp import WantedFile
else:
    from weights_stamp import WantedFile

# Small enough that what is under way is little, large enough that 65 GB have few of them.
_LEAST, _MOST = 256 * 1024, 4 * 1024 * 1024
_WANTED_PIECES = 4096
HASH_BYTES = 20
PADDING = ".pad"


def piece_bytes(total: int) -> int:
    """The size of a piece of a model of `total` bytes: a power of two, 4 MiB at most."""
    size = _LEAST
    while size < _MOST and size * _WANTED_PIECES < total:
        size *= 2
    return size


def ordered(files: Iterable[WantedFile]) -> list[WantedFile]:
    """The contents that are spread, each once, in the order of the pieces. Empty ones need no spreading."""
    return sorted({file.digest: file for file in files if file.size}.values(), key=lambda file: file.digest)


@dataclass(frozen=True)
class Piece:
    """A piece: which file (its place in the order), where in it, how many bytes of it, and of zeros behind it."""

    file: int
    offset: int
    size: int
    padding: int


def pieces(files: Sequence[WantedFile], size: int) -> list[Piece]:
    """All pieces of `ordered` files."""
    found = []
    for number, file in enumerate(files):
        for offset in range(0, file.size, size):
            length = min(size, file.size - offset)
            last = number == len(files) - 1
            found.append(Piece(number, offset, length, 0 if last else size - length))
    return found


def hash_of(path: Path, piece: Piece) -> bytes | None:
    """A piece's hash; None where the file does not hold it. What was read is dropped from the page cache."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        data = os.pread(descriptor, piece.size, piece.offset)
        os.posix_fadvise(descriptor, piece.offset, piece.size, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
    if len(data) < piece.size:
        return None
    found = hashlib.sha1(data, usedforsecurity=False)
    found.update(bytes(piece.padding))
    return found.digest()


def hashes(
    paths: Sequence[Path], cut: Sequence[Piece], on_bytes: Callable[[int], None] = lambda _: None
) -> list[bytes | None]:
    """The hash of each piece, on all cores; `paths`: of the files, in their order."""

    def one(piece: Piece) -> bytes | None:
        found = hash_of(paths[piece.file], piece)
        on_bytes(piece.size)
        return found

    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        return list(pool.map(one, cut))


def information(name: str, files: Sequence[WantedFile], size: int, piece_hashes: bytes) -> dict[bytes, object]:
    """The `info` dictionary. Its hash is what peers prove to each other that they know, so `name` is a secret."""
    entries: list[dict[bytes, object]] = []
    for file in files:
        entries.append({b"length": file.size, b"path": [file.digest.encode()]})
        padding = -file.size % size
        if padding and file is not files[-1]:
            entries.append({b"attr": b"p", b"length": padding, b"path": [PADDING.encode(), str(padding).encode()]})
    return {
        b"files": entries,
        b"name": name.encode(),
        b"piece length": size,
        b"pieces": piece_hashes,
        b"private": 1,
    }
