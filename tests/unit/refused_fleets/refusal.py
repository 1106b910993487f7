"""A fleet file that is refused, and how the refusal reads."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent


@dataclass(frozen=True)
class Refusal:
    """A fleet file and what is told of it: for each line its key, and words that must stand in it."""

    name: str
    text: str
    told: tuple[tuple[int, str, str], ...]


def refusal(name: str, text: str, *told: tuple[int, str, str]) -> Refusal:
    return Refusal(name, dedent(text), told)
