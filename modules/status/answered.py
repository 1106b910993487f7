"""When each host last answered, as this machine remembers it: of one that is silent it says since when.

`.tinderbox/<fleet>/answered.json`. Where it can not be kept or read, nothing is known of before.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from modules.reporting.measured import ROOT


def answered_file(fleet: str, root: Path = ROOT) -> Path:
    """Where it lies."""
    return root / fleet / "answered.json"


def last_answers(fleet: str, root: Path = ROOT) -> dict[str, str]:
    """Host → UTC."""
    try:
        found = json.loads(answered_file(fleet, root).read_text(encoding="utf-8"))
        return {str(name): str(at) for name, at in found.items()}
    except (OSError, ValueError, AttributeError):
        return {}


def note_answers(fleet: str, answers: Mapping[str, str], root: Path = ROOT) -> None:
    """Keep it, in one step."""
    path = answered_file(fleet, root)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(json.dumps({**last_answers(fleet, root), **answers}, indent=1) + "\n", encoding="utf-8")
        beside.replace(path)
