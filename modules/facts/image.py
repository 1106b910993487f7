"""Container images on a host."""

from __future__ import annotations

from dataclasses import dataclass

from pyinfra.api import QuoteString, StringCommand

from modules.facts.base import HostFact

RECIPE_LABEL = "tinderbox.recipe"


@dataclass(frozen=True)
class ImageState:
    """`id`: None where docker has no such image, or is not there. `recipe`: the hash that it was built from."""

    id: str | None
    recipe: str | None


class ImageOnHost(HostFact[ImageState]):
    """An image by its name: a tag, or `name@digest`."""

    def command(self, reference: str) -> StringCommand:
        """Id and label, or a line that says that there is none.

        + reference: the image's name
        """
        # An image without any labels has no map that could be looked into.
        form = f'{{{{.Id}}}} {{{{with .Config.Labels}}}}{{{{index . "{RECIPE_LABEL}"}}}}{{{{end}}}}'
        return StringCommand(
            *("docker image inspect --format", QuoteString(form), QuoteString(reference), "2>/dev/null || echo absent"),
        )

    def parse(self, lines: list[str]) -> ImageState:
        """The last line."""
        words = lines[-1].split()
        if words == ["absent"]:
            return ImageState(None, None)
        return ImageState(words[0], words[1] if len(words) > 1 and words[1] != "<no" else None)
