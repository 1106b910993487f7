"""Flags as data → the argument vector of an engine."""

from __future__ import annotations

from collections.abc import Mapping

from modules.spec.engine import Flags, FlagValue

Placeholders = Mapping[str, str]
"""`{name}` → what stands in its place: `model`, `port`, `listen`, `served_as`, and of a draft model."""


def fill(text: str, placeholders: Placeholders) -> str:
    """Put values for the known placeholders; other braces (a flag's JSON) stay as they are."""
    for name, value in placeholders.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def flag_arguments(name: str, value: FlagValue) -> tuple[str, ...]:
    """One flag: `true` is the bare flag, `false` leaves it out, a list puts its values behind one flag."""
    flag = name if name.startswith("-") else f"--{name}"
    if value is True:
        return (flag,)
    if value is False:
        return ()
    if isinstance(value, tuple):
        return (flag, *value)
    return (flag, str(value))


def engine_command(command: tuple[str, ...], flags: Flags, placeholders: Placeholders) -> tuple[str, ...]:
    """Argv in the container: the engine's command, then its flags, sorted so that reordering a file changes nothing."""
    words = list(command)
    for name in sorted(flags):
        words.extend(flag_arguments(name, flags[name]))
    return tuple(fill(word, placeholders) for word in words)
