"""What the docs say of each key of a fleet file, so that editors say the same."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs" / "fleet-file.md"

_ROW = re.compile(r"^\| (`[^|]+`) \|(?:.*\|)? (.+) \|$", re.MULTILINE)
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)


def descriptions(text: str) -> dict[str, dict[str, str]]:
    """Read the tables of the docs: heading of the section → key → what it is."""
    parts = _SECTION.split(text)[1:]
    return {
        heading: {key: _plain(words) for names, words in _ROW.findall(body) for key in re.findall(r"`([^`]+)`", names)}
        for heading, body in zip(parts[::2], parts[1::2], strict=True)
    }


def _plain(words: str) -> str:
    return words.replace("`", "")
