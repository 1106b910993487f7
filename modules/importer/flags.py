"""From the words of a command line to flags, by the names that the engine's program gives them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from modules.spec.engine import FlagValue, KnownFlags

_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_FLAG = re.compile(r"--?[A-Za-z]")
_LEVEL = re.compile(r"-O(\d)")


@dataclass(frozen=True)
class Parsed:
    """`flags`: by their long names, with underscores as dashes. `alone`: words that belong to no flag.

    `left`: what was said twice, and the earlier of which the program does not heed.
    """

    flags: Mapping[str, FlagValue]
    alone: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


def parse_flags(words: Iterable[str], known: KnownFlags) -> Parsed:
    """Put words together with the flags that they belong to: up to the next flag, the words are its values."""
    taken: dict[str, list[str] | None] = {}
    alone: list[str] = []
    left: list[str] = []
    name: str | None = None
    for word in words:
        if _FLAG.match(word) and not _NUMBER.fullmatch(word):
            flag, equals, value = word.partition("=")
            if level := _LEVEL.fullmatch(flag):
                flag, equals, value = "-O", "=", level.group(1)
            name = long_name(flag, known)
            if taken.get(name) is not None:
                left.append(f"--{name}: given twice, of which the last counts (not {' '.join(taken[name] or [])})")
            taken[name] = [value] if equals else None
            if equals:
                name = None
        elif name is None:
            alone.append(word)
        else:
            taken[name] = [*(taken[name] or []), word]
    return Parsed({flag: _value(values) for flag, values in taken.items()}, tuple(alone), tuple(left))


def long_name(flag: str, known: KnownFlags) -> str:
    """`-tp` → `tensor-parallel-size`, `--max_model_len` → `max-model-len`; keys after a dot stay as they are."""
    first, dot, rest = flag.lstrip("-").partition(".")
    dashed = first.replace("_", "-")
    long = dashed if dashed in known.names else known.short.get(first, dashed.lower())
    return f"{long}{dot}{rest}"


def _value(values: list[str] | None) -> FlagValue:
    if values is None:
        return True
    if len(values) > 1:
        return tuple(values)
    text = values[0]
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        # Not where that would write it otherwise: 0.80, 1e3.
        if str(number) == text:
            return number
    return text
