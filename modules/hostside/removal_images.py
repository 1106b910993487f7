"""Layer images of a removal: images of ours, bases that came for them, what building them has left."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside import docker_cli as docker
    from modules.hostside.atomic import read_json
    from modules.hostside.brought_images import brought, forget_image, spans
    from modules.hostside.disk_sizes import occupied
    from modules.hostside.docker_store import Store, look, made_within
    from modules.hostside.kept_releases import kept, unread
    from modules.hostside.ledger import STATE
    from modules.hostside.removal import IMAGES, Thing
else:
    import docker_cli as docker
    from atomic import read_json
    from brought_images import brought, forget_image, spans
    from disk_sizes import occupied
    from docker_store import look, made_within
    from kept_releases import kept, unread
    from ledger import STATE
    from removal import IMAGES, Thing

IMAGE, BASE, CACHE, FOLDER = "image", "base image", "build cache", "folder"
FOLDERS = ("images", "attestations", "registry")
# Jobs that build: what the cache holds of their time is of ours (modules/operations/image.py).
_BUILDS = "image-*"
# A record may be written a moment before and after the program that waits for it.
_SLACK_S = 5.0


def build_times(state: Path = STATE) -> list[tuple[float, float]]:
    """When builds of ours ran, as far as is known."""
    found = spans(state / "undo")
    for path in sorted((state / "jobs").glob(f"{_BUILDS}/status.json")):
        status: Mapping[str, Any] = read_json(path) or {}
        if isinstance(status.get("started"), float) and isinstance(status.get("ended"), float):
            found.append((status["started"], status["ended"]))
    return [(begin - _SLACK_S, end + _SLACK_S) for begin, end in found]


def things(store: Store | None, state: Path = STATE) -> Iterator[Thing]:
    """What there is of this layer. `store`: None: docker does not answer."""
    needed: dict[str, set[str]] = {}
    releases = kept(state)
    perhaps = unread(releases)
    for one in releases:
        needed.setdefault(str(one.content.get("image")), set()).add(one.service)
    images = store.images if store is not None else ()
    for image in images:
        serving = {name for reference in image.names for name in needed.get(reference, ())}
        running = {one.service for one in (store.containers if store else ()) if one.service and one.image == image.id}
        users = tuple(store.users_of(image)) if store else ()
        for name in image.our_names:
            yield Thing(IMAGES, IMAGE, name, image.bytes, tuple(sorted({*serving, *running, *perhaps})), users)
        for name in (name for name, one in brought(state / "undo").items() if one == image.id):
            yield Thing(IMAGES, BASE, name, image.bytes, users=(*users, *_built_on(store)), note="pulled for builds",
                        data={"id": image.id})  # fmt: skip
    if store is not None:
        ours = made_within(store.cache, build_times(state))
        if ours:
            size = sum(one.bytes for one in ours)
            ids = [one.id for one in ours]
            yield Thing(IMAGES, CACHE, f"of builds of ours, {len(ours)} records", size, data={"ids": ids})
    everybody = tuple(sorted({one.service for one in releases}))
    for name in FOLDERS:
        if (state / name).exists():
            yield Thing(IMAGES, FOLDER, str(state / name), occupied(state / name), everybody)


def _built_on(store: Store | None) -> list[str]:
    """Without its base an image that stays would keep that all the same, under no name."""
    staying = [one for one in (store.images if store else ()) if one.our_names and store and store.users_of(one)]
    return [f"image {one.our_names[0]}, which stays, may be built on it" for one in staying]


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


def tidy(state: Path = STATE) -> None:
    """Forget images that somebody else has removed."""
    for name, image in brought(state / "undo").items():
        if _id_of(name) != image and _id_of(image) is None:
            forget_image(name, state / "undo")


def _id_of(name: str) -> str | None:
    found = docker.inspect(name)
    return None if found is None else str(found["Id"])


def _reference(thing: Thing) -> str | None:
    """By what docker is to remove an image; None: it has other names by now, which are not ours to take.

    Somebody may have pulled another image under a base's name since: that one is theirs.
    """
    if thing.kind == IMAGE or _id_of(thing.name) == thing.data["id"]:
        return thing.name
    found = docker.inspect(str(thing.data["id"]))
    return str(thing.data["id"]) if found is not None and not found.get("RepoTags") else None


def take(thing: Thing, state: Path = STATE) -> None:
    """Have it gone. Raises `OSError`: docker does not let it go."""
    if thing.kind in {IMAGE, BASE}:
        # Without force: what a container uses stays.
        if (reference := _reference(thing)) is not None:
            done = docker.capture("image", "rm", reference)
            if done.returncode != 0 and docker.inspect(reference) is not None:
                raise OSError(f"docker image rm {reference}: {done.stderr.strip()}")
    elif thing.kind == CACHE:
        _prune([str(one) for one in thing.data["ids"]])
    else:
        shutil.rmtree(thing.name)
    if thing.kind == BASE:
        forget_image(thing.name, state / "undo")
