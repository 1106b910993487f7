"""What Tinderbox and its kind use of this host's disks, as one JSON object. Changes nothing.

    disk_state.py WISH    JSON: `images` (names), `revisions` (owner/name@commit): what the fleet file wants here;
                          `home`: its Hugging Face home

`needed` says of each image, revision and cache who needs it, in words; empty: nothing of Tinderbox does. `whose` is
`ours` for what came by Tinderbox, else `others'`, which it never removes.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside import caches, removal_images, removal_weights
    from modules.hostside import weights_before as former
    from modules.hostside.brought_images import brought
    from modules.hostside.cache_owner import look as look_at_owner
    from modules.hostside.cache_owner import user_homes
    from modules.hostside.disk_sizes import occupied
    from modules.hostside.docker_store import Store, look, made_within
    from modules.hostside.image_store import Store as Layers
    from modules.hostside.kept_releases import kept, unread
    from modules.hostside.ledger import STATE
    from modules.hostside.release_needs import lacks
else:
    import caches
    import removal_images
    import removal_weights
    import weights_before as former
    from brought_images import brought
    from cache_owner import look as look_at_owner
    from cache_owner import user_homes
    from disk_sizes import occupied
    from docker_store import Store, look, made_within
    from image_store import Store as Layers
    from kept_releases import kept, unread
    from ledger import STATE
    from release_needs import lacks

OURS, OTHERS, ANY = "ours", "others'", ""
WANTED = "the fleet file wants it"
# What engines and their compilers keep in a user's home.
_USER_CACHES = ("vllm", "flashinfer", "torch", "torch_extensions", "triton", "huggingface")
_HOME_PARTS = {
    "xet": "chunks that the client keeps",
    "tinderbox-set-aside": "files that were not what the hub publishes",
}


def needs(state: Path = STATE) -> dict[str, list[str]]:
    """Image, or owner/name@commit → the releases that need it, in words; `ANY` → those that may need any."""
    releases = kept(state)
    found = {ANY: [f"{service} (perhaps: its ledger can not be read)" for service in unread(releases)]}
    for one in releases:
        keys = [str(one.content.get("image")), *(f"{name}@{commit}" for name, commit in one.models)]
        for key in keys:
            found.setdefault(key, []).append(f"{one.service} ({one.why})")
    return found


def images(store: Store | None, wanted: Sequence[str], needed: dict[str, list[str]]) -> Iterator[dict[str, Any]]:
    """Every image with a name."""
    bases = set(brought().values())
    for image in store.images if store is not None else ():
        ours = bool(image.our_names) or image.id in bases
        users = [who for name in image.names for who in needed.get(name, ())] + store.users_of(image) if store else []
        users += [WANTED] if set(image.names) & set(wanted) else []
        users += needed.get(ANY, ()) if ours else ()
        if image.names:
            yield {"name": image.names[0], "bytes": image.bytes, "whose": OURS if ours else OTHERS, "needed": users,
                   "base": image.id in bases}  # fmt: skip


def weights(wanted: Sequence[str], needed: dict[str, list[str]], homes: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """Every revision that was verified here, and every model beside them."""
    known = set()
    for repository, commit in removal_weights.revisions():
        known.add(repository.folder)
        had = former.before(repository)
        theirs = had is None or had.had(repository.snapshot(commit), repository.folder)
        name = f"{repository.name}@{commit}"
        users = [*needed.get(name, ()), *needed.get(ANY, ()), *([WANTED] if name in wanted else [])]
        # Of blobs that revisions share, each counts those that it alone has.
        blobs = former.brought(repository, commit, had) if had is not None and not theirs else []
        size = sum(map(occupied, blobs)) if blobs else occupied(repository.folder)
        whose = OTHERS if theirs else OURS
        yield {"revision": name, "home": str(repository.home), "bytes": size, "whose": whose, "needed": users}
    for home in homes:
        for folder in sorted(home.glob("hub/models--*")):
            if folder not in known:
                name = folder.name.removeprefix("models--").replace("--", "/", 1)
                yield {"revision": name, "home": str(home), "bytes": occupied(folder), "whose": OTHERS, "needed": []}


def partial(homes: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """Downloads that are not whole, and what clients keep beside models."""
    for home in homes:
        parts = [*home.glob("hub/models--*/blobs/*.incomplete"), *home.glob("hub/datasets--*/blobs/*.incomplete")]
        if parts:
            told = f"{len(parts)} downloads that are not whole"
            yield {"path": str(home / "hub"), "bytes": sum(map(occupied, parts)), "what": told}
        for name, what in _HOME_PARTS.items():
            if (home / name).is_dir():
                yield {"path": str(home / name), "bytes": occupied(home / name), "what": what}


def compiled(state: Path = STATE) -> Iterator[dict[str, Any]]:
    """What engines have compiled: of Tinderbox' services, and in users' homes."""
    stale = set(caches.unneeded(state))
    for folder in sorted((state / "caches").glob("*/keyed/*/")):
        name = str(folder.relative_to(state / "caches"))
        service = [] if name in stale else [folder.parents[1].name]
        yield {"path": str(folder), "bytes": occupied(folder), "whose": OURS, "needed": service, "name": name}
    for home in user_homes():
        for name in _USER_CACHES[:-1]:
            path = home.parent / name
            if path.is_dir():
                yield {"path": str(path), "bytes": occupied(path), "whose": OTHERS, "needed": [], "name": name}


def releases(state: Path = STATE) -> list[dict[str, Any]]:
    """Those that stay startable, and what of them is gone all the same."""
    return [
        {"service": one.service, "release": one.release, "why": one.why, "lacks": lacks(one.entry)}
        for one in kept(state)
    ]


def disks(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """Each disk once, by the first of these paths that lies on it."""
    found: dict[int, dict[str, Any]] = {}
    for path in paths:
        if path.exists():
            usage = shutil.disk_usage(path)
            entry = found.setdefault(path.stat().st_dev, {"path": str(path), "total": usage.total, "free": usage.free})
            entry.setdefault("paths", []).append(str(path))
    return list(found.values())


def state_of(wish: dict[str, Any], state: Path = STATE) -> dict[str, Any]:
    """All of it."""
    store, needed = look(), needs(state)
    homes = sorted({Path(str(wish["home"])), *user_homes(), *(one.home for one, _ in removal_weights.revisions())})
    ours = made_within(store.cache, removal_images.build_times(state)) if store is not None else []
    cache = sum(one.bytes for one in store.cache) if store is not None else 0
    built = sum(one.bytes for one in ours)
    rest = {
        name: occupied(state / name) for name in ("registry", "jobs", "tools", "encodings") if (state / name).exists()
    }
    layers = {name for image in (store.images if store else ()) for name in image.names}
    owned = [look_at_owner(home) for home in homes]
    return {
        "disks": disks([Path("/"), Path("/var/lib/docker"), state, *homes]),
        "docker": store is not None,
        "images": list(images(store, wish["images"], needed)),
        "build_cache": {"ours": built, "others": cache - built},
        "weights": list(weights(wish["revisions"], needed, homes)),
        "partial": list(partial(homes)),
        "caches": list(compiled(state)),
        "rest": rest,
        "stale_layers": sum(Layers().unneeded(layers).values()) if store is not None else 0,
        "releases": releases(state),
        "owned": [asdict(one) for one in owned if one is not None],
    }


if __name__ == "__main__":
    print(json.dumps(state_of(json.loads(sys.argv[1]))))
