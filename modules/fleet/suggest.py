"""Guess what a mistyped word was meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Give the known word that is most like this one, if any is alike."""
    spellings = {name.lower().replace("_", "-"): name for name in known}
    found = difflib.get_close_matches(word.lower().replace("_", "-"), spellings, n=1, cutoff=0.6)
    return spellings[found[0]] if found else None


def advice(word: str, known: Iterable[str], kind: str) -> str:
    """Say what to write in place of an unknown word: the nearest known one, or all of them."""
    names = sorted(known)
    meant = nearest(word, names)
    if meant is not None:
        return f"did you mean {meant}?"
    return f"known {kind}: {', '.join(names)}" if names else f"there are no {kind} here"
