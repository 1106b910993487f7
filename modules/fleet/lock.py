"""Read and write a fleet's lock, `<fleet file>.lock.yaml` beside the fleet file."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import yaml

from modules.fleet.problem import FleetError
from modules.fleet.source import read_tree
from modules.fleet.validate import validated
from modules.spec.lock import Lock

_REMEDY = "take it back as it was committed, or remove it and have all of it resolved anew"
_HEADER = """\
# What the fleet's loose wishes resolved to: a model's revision to a commit and its files, an image's tag to a digest,
# a number of replicas to hosts.
# Written by Tinderbox and meant to be committed, so that every run and every operator get the same.
# Take an entry out to have it resolved anew.
"""


def lock_path(fleet: Path) -> Path:
    """Give the lock's place: `inventory/lab.yaml` has `inventory/lab.lock.yaml`."""
    return fleet.with_suffix(".lock.yaml")


def read_lock(fleet: Path) -> Lock:
    """Read the lock of a fleet file; an absent one is empty.

    Raises `FleetError`: it was edited into something else.
    """
    path = lock_path(fleet)
    if not path.exists() or not _has_entries(path):
        return Lock()
    try:
        tree = read_tree(path)
    except FleetError as error:
        # What is wrong with the file as a whole is told for a fleet file, which has another remedy.
        told = (one if one.origin.key else replace(one, todo=_REMEDY) for one in error.problems)
        raise FleetError(path, told) from None
    lock = validated(Lock, tree)
    if isinstance(lock, list):
        raise FleetError(path, lock)
    return lock


def record(
    fleet: Path,
    *,
    models: Mapping[str, str] | None = None,
    images: Mapping[str, str] | None = None,
    files: Mapping[str, Mapping[str, str]] | None = None,
    placements: Mapping[str, Sequence[str]] | None = None,
) -> Lock:
    """Add what was resolved to the lock, and give the whole of it. An entry that is there already stays as it is.

    `placements`: where services are, from now on; these take the place of those that are there.

    Safe against other processes that do the same; the file is replaced whole, or not at all.

    Raises `ValidationError`: a value is no commit, no digest, or no line of a file.
    """
    path = lock_path(fleet)
    with _alone(path):
        before = read_lock(fleet)
        after = Lock(
            models={**(models or {}), **before.models},
            images={**(images or {}), **before.images},
            files={
                **before.files,
                **{key: {**each, **before.files.get(key, {})} for key, each in (files or {}).items()},
            },
            placements=before.placements
            if placements is None
            else {name: tuple(hosts) for name, hosts in placements.items()},
        )
        if after != before:
            _replace(path, _text(after))
    return after


def _has_entries(path: Path) -> bool:
    # What is no text, or no file, is an entry, too: reading the tree refuses it with its line.
    if not path.is_file():
        return True
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return any(line.strip() and not line.startswith("#") for line in lines)


def _text(lock: Lock) -> str:
    entries = {name: dict(sorted(kind.items())) for name, kind in lock.model_dump(mode="json").items() if kind}
    return _HEADER + yaml.safe_dump(entries, sort_keys=True, width=1000)


def _replace(path: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        # gevent, which pyinfra patches in, closes only when its loop runs next: until then this would lock us out, too.
        fcntl.flock(folder, fcntl.LOCK_UN)
        os.close(folder)
