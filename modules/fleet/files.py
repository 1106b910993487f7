"""Paths in a fleet file count from its folder."""

from __future__ import annotations

import os
from pathlib import Path

# Datasets that ship with Tinderbox.
DATASETS = Path(__file__).parents[1] / "catalog" / "datasets"


def from_folder(path: str, folder: Path) -> Path:
    """Make a path of a fleet file absolute, `~` expanded. Links are kept: their names may be the better ones."""
    return Path(os.path.normpath(folder / Path(path).expanduser()))
