"""What a run of deploys/disk.py wrote of its hosts. Pure."""

from __future__ import annotations

import json
from typing import Any


def told_of(output: str) -> dict[str, dict[str, Any]]:
    """Host → what its disks hold, from the lines that are about a host; pyinfra's own results stand beside them."""
    found: dict[str, dict[str, Any]] = {}
    for line in output.splitlines():
        if not line.startswith('{"host": '):
            continue
        try:
            one = json.loads(line)
        except ValueError:
            continue
        found[one["host"]] = one
    return found
