"""Layer images of a removal: images of ours, bases that came for them, what building them has left."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside import docker_cli as docker
    from modules.hostside.atomic import read_json, write_json
    from modules.hostside.disk_sizes import occupied
    from modules.hostside.docker_store import Store, look, made_within
    from modules.hostside.kept_releases import kept
    from modules.hostside.ledger import STATE
    from modules.hostside.removal import IMAGES, Thing
else:
    import docker_cli as docker
    from atomic import read_json, write_json
    from disk_sizes import occupied
    from docker_store import look, made_within
    from kept_releases import kept
    from ledger import STATE
    from removal import IMAGES, Thing

IMAGE, BASE, CACHE, FOLDER = "image", "base image", "build cache", "folder"
FOLDERS = ("images", "attestations", "registry")
# Jobs that build: what the cache holds of their time is of ours (modules/operations/image.py).
_BUILDS = "image-*"
# A record may be written a moment before and after the program that waits for it.
_SLACK_S = 5.0


def pulled(state: Path = STATE) -> dict[str, str]:
    """Name → id of the images that Tinderbox has pulled under their registries' own names (pull_image.py)."""
    found: Mapping[str, Any] = read_json(state / "undo" / "images.json") or {}
    return {str(name): str(image) for name, image in found.items()}


def build_times(state: Path = STATE) -> list[tuple[float, float]]:
    """When builds of ours ran, as far as is known."""
    spans = []
    for path in sorted((state / "jobs").glob(f"{_BUILDS}/status.json")):
        status: Mapping[str, Any] = read_json(path) or {}
        if isinstance(status.get("started"), float) and isinstance(status.get("ended"), float):
            spans.append((status["started"] - _SLACK_S, status["ended"] + _SLACK_S))
    return spans


def things(store: Store | None, state: Path = STATE) -> Iterator[Thing]:
    """What there is of this layer. `store`: None: docker does not answer."""
    needed: dict[str, set[str]] = {}
    for one in kept(state):
        needed.setdefault(str(one.content.get("image")), set()).add(one.service)
    images = store.images if store is not None else ()
    for image in images:
        serving = {name for reference in image.names for name in needed.get(reference, ())}
        running = {one.service for one in (store.containers if store else ()) if one.service and one.image == image.id}
        users = tuple(store.users_of(image)) if store else ()
        for name in image.our_names:
            yield Thing(IMAGES, IMAGE, name, image.bytes, tuple(sorted(serving | running)), users)
        for name in (name for name, one in pulled(state).items() if one == image.id):
            yield Thing(IMAGES, BASE, name, image.bytes, users=users, note="pulled for builds")
    if store is not None:
        ours = made_within(store.cache, build_times(state))
        if ours:
            size = sum(one.bytes for one in ours)
            ids = [one.id for one in ours]
            yield Thing(IMAGES, CACHE, f"of builds of ours, {len(ours)} records", size, data={"ids": ids})
    everybody = tuple(sorted({one.service for one in kept(state)}))
    for name in FOLDERS:
        if (state / name).exists():
            yield Thing(IMAGES, FOLDER, str(state / name), occupied(state / name), everybody)


def _prune(ids: list[str]) -> None:
    """Docker removes no record that others were made from: so the last ones first, and again as long as some go."""
    while ids:
        for one in reversed(ids):
            docker.capture("builder", "prune", "--all", "--force", "--filter", f"id={one}")
        store = look()
        left = {one.id for one in store.cache} if store is not None else set()
        before, ids = ids, [one for one in ids if one in left]
        if ids == before:
            return


def take(thing: Thing, state: Path = STATE) -> None:
    """Have it gone. Raises `OSError`: docker does not let it go."""
    if thing.kind in {IMAGE, BASE}:
        # Without force: what a container uses stays.
        done = docker.capture("image", "rm", thing.name)
        if done.returncode != 0 and docker.inspect(thing.name) is not None:
            raise OSError(f"docker image rm {thing.name}: {done.stderr.strip()}")
    elif thing.kind == CACHE:
        _prune([str(one) for one in thing.data["ids"]])
    else:
        shutil.rmtree(thing.name)
    if thing.kind == BASE:
        write_json(state / "undo" / "images.json", {k: v for k, v in pulled(state).items() if k != thing.name})
