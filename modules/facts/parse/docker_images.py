"""`docker images --format '{{.Repository}}:{{.Tag}} {{.ID}}'`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from modules.facts.parse.errors import ParseError
from modules.facts.parse.text import lines_of

_PROGRAM = "docker images"
_LINE = re.compile(r"(\S+):([^\s:/]+)\s+((?:sha256:)?[0-9a-f]{12,64})")


@dataclass(frozen=True)
class Image:
    """An image; repository and tag are None where docker says `<none>`."""

    repository: str | None
    tag: str | None
    id: str

    @property
    def reference(self) -> str | None:
        """`repository:tag`, None for an image without a name."""
        return None if self.repository is None or self.tag is None else f"{self.repository}:{self.tag}"


def parse_docker_images(text: str) -> tuple[Image, ...]:
    """One image a line; no line at all is no image. A registry's port belongs to the repository."""
    images = []
    for at, line in enumerate(lines_of(text), start=1):
        if not line.strip():
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise ParseError(_PROGRAM, "expected `repository:tag id`", line=at, text=line)
        repository, tag = (None if part == "<none>" else part for part in (match[1], match[2]))
        images.append(Image(repository, tag, match[3]))
    return tuple(images)
