"""`docker pull` without a terminal."""

from __future__ import annotations

import re
from dataclasses import dataclass

from modules.facts.parse.errors import ParseError
from modules.facts.parse.text import lines_of

_PROGRAM = "docker pull"
_LAYER = re.compile(r"([0-9a-f]{12}): (.+)")
_EXTRACTED = frozenset({"Pull complete", "Already exists"})
_DOWNLOADED = _EXTRACTED | {"Download complete", "Extracting"}
_REFUSALS = re.compile(
    r"Error response from daemon: |Error: |Cannot connect to the Docker daemon|error pulling|failed to register layer"
)


@dataclass(frozen=True)
class DockerPull:
    """`digest`: of what was pulled; without one the pull did not finish.

    `not_downloaded`, `not_extracted`: layers that never got so far; the second holds the first.
    """

    layers: int
    not_downloaded: tuple[str, ...]
    not_extracted: tuple[str, ...]
    digest: str | None
    status: str | None
    error: str | None

    @property
    def finished(self) -> bool:
        """Whether the image is whole. Only docker's closing lines say so: exit status and layer lines do not."""
        return self.digest is not None and self.status is not None and self.error is None


def parse_docker_pull(text: str) -> DockerPull:
    """What came of a pull; an output without any line of a pull is an error."""
    layers: dict[str, str] = {}
    digest = status = error = None
    begun = False
    for line in lines_of(text):
        stripped = line.strip()
        if layer := _LAYER.fullmatch(stripped):
            layers[layer[1]] = layer[2]
        elif closing := re.fullmatch(r"Digest: (sha256:[0-9a-f]{64})", stripped):
            digest = closing[1]
        elif stripped.startswith("Status: "):
            status = stripped.removeprefix("Status: ")
        elif _REFUSALS.match(stripped):
            error = stripped
        elif "Pulling from" in stripped:
            begun = True
    if not begun and not layers and digest is None and error is None:
        raise ParseError(_PROGRAM, "not the output of a pull", text=text)
    return DockerPull(
        layers=len(layers),
        not_downloaded=tuple(name for name, state in layers.items() if state not in _DOWNLOADED),
        not_extracted=tuple(name for name, state in layers.items() if state not in _EXTRACTED),
        digest=digest,
        status=status,
        error=error,
    )
