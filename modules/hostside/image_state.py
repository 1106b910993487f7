"""What this host has of the images that it should have, and of those that it needs no more, as one JSON object.

    image_state.py REFERENCE...

`images`: reference → {"id", "recipe"} or null; `removable`: names of ours that nothing needs; `registry`: bytes of
layers, kept for passing images on, that no image here is made of; `offer`: whether a transfer has left something
behind; `caches`: what engines have compiled for images or drivers that no release is proved on any more. Nothing here
changes anything.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside import caches
    from modules.hostside import docker_cli as docker
    from modules.hostside.image_store import Store
    from modules.hostside.kept_releases import kept
    from modules.hostside.ledger import STATE
else:
    import caches
    import docker_cli as docker
    from image_store import Store
    from kept_releases import kept
    from ledger import STATE

RECIPE_LABEL = "tinderbox.recipe"
LEFTOVERS = (Path("/run/tinderbox/offer"), Path("/run/tinderbox/receive"))
# What Tinderbox calls the images that it builds or pulls. An image without such a name is never touched.
_OURS = re.compile(r"tinderbox/[a-z0-9]+([._-]+[a-z0-9]+)*:[0-9a-f]{12}")

_NAMES = ("image", "ls", "--no-trunc", "--format", "{{.ID}} {{.Repository}}:{{.Tag}}")
# What containers were made from, as docker names it.
_USED = ("container", "ls", "--all", "--no-trunc", "--format", "{{.Image}}")


def served(root: Path = STATE) -> set[str] | None:
    """Images of every release that stays startable (kept_releases.py); None where an entry can not be read."""
    images = [one.content.get("image") for one in kept(root)]
    return None if not all(isinstance(image, str) for image in images) else {str(image) for image in images}


def removable(
    listed: Iterable[tuple[str, str]], wanted: Collection[str], needed: Collection[str] | None, running: Collection[str]
) -> list[str]:
    """Names of images that may go.

    `listed`: (id, name) of every name that docker has. `wanted`: what the fleet file wants here. `needed`: see
    `served`; None: nothing may go. `running`: names and ids that containers, stopped ones too, were made from.
    """
    if needed is None:
        return []
    images = list(listed)
    kept = {image for image, name in images if {image, name} & {*wanted, *needed, *running}}
    return sorted(name for image, name in images if _OURS.fullmatch(name) and image not in kept)


def inspected(references: list[str], said: Iterable[str]) -> dict[str, dict[str, Any] | None]:
    """Each reference's image, or None. `said`: what `docker image inspect` said of each."""
    found: dict[str, dict[str, Any] | None] = dict.fromkeys(references)
    for reference, text in zip(references, said, strict=True):
        # Of one that it has not, docker prints an empty list.
        for image in json.loads(text.strip() or "[]"):
            labels = (image.get("Config") or {}).get("Labels") or {}
            found[reference] = {"id": image["Id"], "recipe": labels.get(RECIPE_LABEL)}
    return found


def names_in(said: str) -> list[tuple[str, str]]:
    """(id, name) of everything that docker calls by a name, from its list."""
    return [(image, name) for image, name in (line.split(" ", 1) for line in said.splitlines()) if "<none>" not in name]


def names() -> list[tuple[str, str]]:
    """(id, name) of everything that docker calls by a name."""
    return names_in(docker.capture(*_NAMES).stdout)


def not_needed(wanted: Collection[str]) -> tuple[list[str], int]:
    """Names that may go, and bytes in the registry that then may."""
    listed, containers = docker.capture_all(_NAMES, _USED)
    return _not_needed(wanted, names_in(listed), set(containers.split()))


def _not_needed(wanted: Collection[str], listed: list[tuple[str, str]], used: Collection[str]) -> tuple[list[str], int]:
    going = removable(listed, wanted, served(), used)
    # Without docker's list nothing can be said.
    stale = Store().unneeded({name for _, name in listed} - set(going)) if listed else {}
    return going, sum(stale.values())


def main(references: list[str]) -> int:
    """Print the state as JSON."""
    try:
        # Side by side: each takes longer to start than to answer.
        looks = [("image", "inspect", reference) for reference in references]
        listed, containers, *said = docker.capture_all(_NAMES, _USED, *looks)
        found = inspected(references, said)
        going, stale = _not_needed(references, names_in(listed), set(containers.split()))
        left = any(path.is_dir() and any(path.iterdir()) for path in LEFTOVERS)
    except OSError:  # docker is not installed yet
        found, going, stale, left = dict.fromkeys(references), [], 0, False
    told = {"images": found, "removable": going, "registry": stale, "offer": left, "caches": caches.unneeded()}
    print(json.dumps(told))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
