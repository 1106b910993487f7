"""Secrets out of what is shown: by their form, and those that the fleet knows by value."""

from __future__ import annotations

from collections.abc import Iterable

from modules.hostside.masking import MASK, masked, masked_lines

__all__ = ["MASK", "mask", "mask_lines"]

# A shorter one would be found in the middle of other words.
_SHORTEST = 6


def mask(line: str, secrets: Iterable[str] = ()) -> str:
    """One line. `secrets`: values that are hidden wherever they stand."""
    return masked(_without(line, secrets))


def mask_lines(lines: Iterable[str], secrets: Iterable[str] = ()) -> tuple[str, ...]:
    """Many lines; a private key that goes over several becomes one."""
    known = tuple(secrets)
    return tuple(masked_lines(_without(line, known) for line in lines))


def _without(line: str, secrets: Iterable[str]) -> str:
    # The longest first, since one may be a part of another.
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST:
            line = line.replace(secret, MASK)
    return line
