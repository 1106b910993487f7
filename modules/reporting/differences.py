"""What on a host is not as the fleet file says, as a dry run hands it to whoever started it. No I/O but the file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TypedDict

# Names the file to which each difference is added as a line of JSON.
DIFFERENCES_FILE = "TINDERBOX_DIFFERENCES"


class Difference(TypedDict):
    """`thing`: what differs, by its name on the host. `detail`: how; may have several lines; never a secret."""

    host: str
    operation: str
    thing: str
    detail: str


def note_difference(difference: Difference) -> None:
    """Add one, where somebody wants to know."""
    path = os.environ.get(DIFFERENCES_FILE)
    if path is not None:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(difference) + "\n")


def are_asked_for() -> bool:
    """Whether somebody wants to know, so that looking closer is worth a question to the host."""
    return DIFFERENCES_FILE in os.environ


def read_differences(path: Path) -> list[Difference]:
    """What was written down, each once, in order. A last line that was cut off is left out."""
    found: list[Difference] = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            difference: Difference = json.loads(line)
        except ValueError:
            continue
        if difference not in found:
            found.append(difference)
    return found
