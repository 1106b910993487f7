"""A cached piece: its recipe decides its name, and it appears in the cache only when it is whole."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


def cache_directory() -> Path:
    """Where pieces are kept between runs."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tinderbox" / "lab"


@dataclass(frozen=True)
class Piece:
    """`recipe`: everything that decides what is made, but for `build`: who changes what that does changes the recipe.

    `build` fills an empty folder; the pieces in `needs` are there by then.
    """

    name: str
    recipe: object
    build: Callable[[Path], None]
    needs: tuple[Piece, ...] = ()

    @property
    def key(self) -> str:
        """Twelve hex digits of the hash of the recipe, of the machine's architecture, and of all that it needs."""
        decides = json.dumps([platform.machine(), self.recipe, [piece.key for piece in self.needs]], sort_keys=True)
        return hashlib.sha256(decides.encode()).hexdigest()[:12]

    @property
    def path(self) -> Path:
        """Where it is, or will be."""
        return cache_directory() / f"{self.name}-{self.key}"

    @property
    def ready(self) -> bool:
        """Whether it is in the cache."""
        return self.path.is_dir()


def make(piece: Piece) -> Path:
    """Build a piece unless it is there. Of several processes that want it, one builds and the others wait."""
    if piece.ready:
        return piece.path
    with locked(piece.path.name):
        if not piece.ready:
            # Under the lock, a half-made folder is what a killed process left behind.
            for leftover in cache_directory().glob(f".{piece.path.name}.making-*"):
                shutil.rmtree(leftover)
            work = Path(tempfile.mkdtemp(prefix=f".{piece.path.name}.making-", dir=cache_directory()))
            try:
                work.chmod(0o755)
                piece.build(work)
                work.rename(piece.path)
            finally:
                shutil.rmtree(work, ignore_errors=True)
    return piece.path


@contextmanager
def locked(name: str) -> Iterator[None]:
    """While this lasts, other processes that want the same lock wait. A killed holder lets go of it."""
    cache_directory().mkdir(parents=True, exist_ok=True)
    with (cache_directory() / f".{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def in_use(name: str) -> Iterator[None]:
    """While this lasts, nobody else is `unused`; any number may be in it at once. Waits for one who is."""
    cache_directory().mkdir(parents=True, exist_ok=True)
    with (cache_directory() / f".{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


@contextmanager
def unused(name: str) -> Iterator[bool]:
    """Whether nobody is `in_use`, without waiting; then whoever wants to be has to wait while this lasts."""
    cache_directory().mkdir(parents=True, exist_ok=True)
    with (cache_directory() / f".{name}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
