"""Making pieces at the same time, each as soon as what it needs is there."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from modules.lab.pieces.piece import Piece, make
from modules.lab.progress import Progress


def make_all(pieces: Sequence[Piece], progress: Progress) -> None:
    """Make all pieces and what they need.

    Raises:
        LabError: of the first that fails; the others are brought to their end before.

    """
    wanted = _with_needs(pieces)
    with ThreadPoolExecutor(max(len(wanted), 1)) as pool:
        futures: dict[str, Future[Path]] = {}
        for name, piece in wanted.items():
            futures[name] = pool.submit(_make, piece, [futures[need.name] for need in piece.needs], progress)
    for future in futures.values():
        future.result()


def _with_needs(pieces: Sequence[Piece]) -> dict[str, Piece]:
    """By name, those that are needed before those that need them."""
    found: dict[str, Piece] = {}
    for piece in pieces:
        found |= _with_needs(piece.needs)
        found[piece.name] = piece
    return found


def _make(piece: Piece, needs: list[Future[Path]], progress: Progress) -> Path:
    for need in needs:
        need.result()
    if piece.ready:
        return piece.path
    with progress.step(f"make {piece.name}"):
        return make(piece)
