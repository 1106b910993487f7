"""Hash files while their pieces arrive, each from its start as far as it is there.

What just came is still in memory, and the cores have little else to do meanwhile: when the last piece is here, little
is left to hash. A hash that comes out wrong says nothing yet, since a piece may be read before it is written: whoever
needs to know reads that file again.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.swarm_pieces import Piece
    from modules.hostside.weights_hashes import hub_hash
    from modules.hostside.weights_stamp import WantedFile
else:
    from weights_hashes import hub_hash

_READ = 8 * 1024 * 1024


class _Begun:
    """A file, and how much of it from its start went into its hash."""

    def __init__(self, path: Path, file: WantedFile) -> None:
        self.file = file
        self.pieces: list[tuple[int, int]] = []
        self.whole = 0
        self.running: Future[None] | None = None
        self._path = path
        self._hash = hub_hash(file.size, lfs=file.lfs)
        self._done = 0

    def add(self, until: int) -> None:
        """Take in what lies between what was taken in before and `until`. Raises `OSError`."""
        with self._path.open("rb", buffering=0) as content:
            content.seek(self._done)
            while self._done < until and (read := content.read(min(_READ, until - self._done))):
                self._hash.update(read)
                self._done += len(read)

    def digest(self) -> str | None:
        """That of the whole file; None where not all of it was taken in."""
        return self._hash.hexdigest() if self._done == self.file.size else None


class Arriving:
    """The files that are on their way."""

    def __init__(self, parts: Mapping[str, Path], files: Sequence[WantedFile], cut: Sequence[Piece]) -> None:
        """`cut`: the pieces of all `files`, in their order; `parts`: digest → where the content is gathered."""
        begun = [_Begun(parts[file.digest], file) if file.digest in parts else None for file in files]
        for number, piece in enumerate(cut):
            of = begun[piece.file]
            if of is not None:
                of.pieces.append((number, piece.offset + piece.size))
        self._begun = [each for each in begun if each is not None]
        self._count = len(cut)
        self._pool = ThreadPoolExecutor(max_workers=os.cpu_count())

    def advance(self, have: Sequence[bool]) -> None:
        """Go on with each file as far as its pieces are on the disk; returns at once."""
        for begun in self._begun:
            if begun.running is not None and not begun.running.done():
                continue
            before = begun.whole
            while begun.whole < len(begun.pieces) and have[begun.pieces[begun.whole][0]]:
                begun.whole += 1
            if begun.whole > before:
                begun.running = self._pool.submit(begun.add, begun.pieces[begun.whole - 1][1])

    def found(self) -> dict[str, str]:
        """When all is on the disk: the digest that each file should have → the one that it has.

        Raises nothing: a file that can not be read is not in it.
        """
        for begun in self._begun:
            if begun.running is not None:
                begun.running.exception()
        self.advance([True] * self._count)
        self._pool.shutdown()
        digests = ((begun.file.digest, begun.digest()) for begun in self._begun)
        return {wanted: digest for wanted, digest in digests if digest is not None}
