"""Files that are whole or not there: write beside, flush to the disk, rename."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path


def write_text(path: Path, text: str, mode: int = 0o644) -> None:
    """Put `text` at `path` in one step, durable when this returns. `mode` holds before anything is written."""
    descriptor, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), mode)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(beside).replace(path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


def write_json(path: Path, document: object, mode: int = 0o644) -> None:
    """Put `document` at `path` as JSON in one step."""
    write_text(path, json.dumps(document, indent=1, sort_keys=True) + "\n", mode)


def read_json(path: Path) -> dict[str, object] | None:
    """The JSON object at `path`, or None where there is no file or another thing in it."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return document if isinstance(document, dict) else None
