"""What a run has found on each host, as pyinfra's process hands it to whoever started it. No I/O but the file."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import ValidationError

from modules.check.document import HostCheck

# Names the file to which each host is added as a line of JSON.
CHECK_FILE = "TINDERBOX_CHECK"


def keep(check: HostCheck) -> None:
    """Add one, where somebody wants to know."""
    path = os.environ.get(CHECK_FILE)
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(check.model_dump_json(by_alias=True) + "\n")


def read(path: Path) -> dict[str, HostCheck]:
    """Host → what was found. A last line that was cut off is left out."""
    found: dict[str, HostCheck] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            check = HostCheck.model_validate_json(line)
        except ValidationError:
            continue
        found[check.host] = check
    return found
