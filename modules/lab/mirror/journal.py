"""A line of JSON for every request, so that a test can say what was fetched, and how often."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime
from pathlib import Path


class Journal:
    """Appends to one file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()

    def write(self, **entry: object) -> None:
        """Add one line, stamped with the time (UTC)."""
        line = json.dumps({"time": datetime.now(UTC).isoformat(timespec="milliseconds"), **entry})
        with self._lock, self._path.open("a") as file:
            file.write(line + "\n")
