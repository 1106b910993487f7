"""Images, and what engines compiled for them, are removed from a host that needs them no more."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from pyinfra import host
from pyinfra.api import QuoteString, StringCommand, operation
from pyinfra.api.command import PyinfraCommand

from modules.facts.image_survey import HostImages, ImagesOnHost
from modules.operations.differences import differs
from modules.operations.image_survey import references_of, surveyed
from modules.operations.require import unreadable
from modules.release import layout
from modules.reporting.progress import size
from modules.spec.image import Recipe

PRUNE = str(layout.PROGRAMS / "prune_images.py")


@operation()
def images_pruned(recipes: Sequence[Recipe], wanted: bool) -> Generator[PyinfraCommand, None, None]:
    """Remove images of ours that neither the fleet file nor a current or last good release nor a container needs.

    With them go the caches of engines whose image or driver no such release is proved on any more.

    + recipes: of this host's images, by the fleet file
    + wanted: whether to remove anything at all
    """
    if not wanted:
        host.noop("image.prune is false")
        return
    references = references_of(recipes)
    found = host.get_fact(ImagesOnHost, references=references) if _has_changed() else surveyed(host)
    if found is None:
        yield from unreadable("what images it has")
    elif found.removable or found.stale_bytes or found.caches:
        host.log(f"not needed any more: {_told(found)}")
        differs("images and caches", f"that nothing needs any more: {_told(found)}")
        yield StringCommand(layout.PYTHON, PRUNE, *(QuoteString(reference) for reference in references))
    else:
        host.noop("every image and every cache is needed")


def _told(found: HostImages) -> str:
    layers = f"{size(found.stale_bytes)} of layers for passing images on" if found.stale_bytes else ""
    return ", ".join([*found.removable, *([layers] if layers else []), *(f"caches {name}" for name in found.caches)])


def _has_changed() -> bool:
    """Whether this run has changed anything on the host, so that what it saw before may not hold any more."""
    done = [operation.operation_meta for operation in host.state.ops[host].values()]
    return any(meta.is_complete() and meta.did_change() for meta in done)
