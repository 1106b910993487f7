"""What docker has got by Tinderbox under names that are not its own, and when it built: so that both can go again.

/var/lib/tinderbox/undo/images.json    name, or name@digest → id of the image that came under it
/var/lib/tinderbox/undo/builds.json    `spans`: beginning and end of each build, in seconds since 1970
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.atomic import read_json, write_json
else:
    from atomic import read_json, write_json

UNDO = Path("/var/lib/tinderbox/undo")
_NEWEST = 200


def brought(undo: Path = UNDO) -> dict[str, str]:
    """Name → id of the images that came so."""
    found: Mapping[str, Any] = read_json(undo / "images.json") or {}
    return {str(name): str(image) for name, image in found.items()}


def note_image(name: str, image: str, undo: Path = UNDO) -> None:
    """An image came under this name."""
    undo.mkdir(parents=True, exist_ok=True)
    write_json(undo / "images.json", brought(undo) | {name: image})


def forget_image(name: str, undo: Path = UNDO) -> None:
    """It went again."""
    left = {known: image for known, image in brought(undo).items() if known != name}
    write_json(undo / "images.json", left) if left else (undo / "images.json").unlink(missing_ok=True)


def spans(undo: Path = UNDO) -> list[tuple[float, float]]:
    """When builds of ours ran."""
    found: Any = (read_json(undo / "builds.json") or {}).get("spans")
    return [(float(begin), float(end)) for begin, end in found] if isinstance(found, list) else []


@contextmanager
def noted_build(undo: Path = UNDO) -> Iterator[None]:
    """Note when what is done within this began and ended, also where it failed."""
    began = time.time()
    try:
        yield
    finally:
        undo.mkdir(parents=True, exist_ok=True)
        write_json(undo / "builds.json", {"spans": [*spans(undo), (began, time.time())][-_NEWEST:]})
