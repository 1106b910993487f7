"""A line of what a host tells of its journals, and how an entry is shown. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

from modules.diagnosis.mask import mask
from modules.release import layout

# What a terminal would take for commands: a log may hold anything.
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-_]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Of a terminal's, those that can be told apart on both dark and light ground.
COLOURS = (36, 33, 32, 35, 34, 31)


@dataclass(frozen=True)
class Entry:
    """One entry. `source`: whose host; `at`: µs of the epoch; `part`: service, and which unit beside its own."""

    source: str
    part: str
    at: int
    text: str


def units_of(services: Iterable[str]) -> dict[str, str]:
    """Unit → how it is called in front of its lines."""
    found = {}
    for name in services:
        found[layout.unit_name(name)] = name
        found[layout.watch_unit_name(name)] = f"{name}/watch"
        found[layout.pair_unit_name(name)] = f"{name}/pair"
    return found


def document_of(line: str) -> dict[str, Any] | None:
    """What a line says; None for one that is none of ours, as a login banner's."""
    if not line.startswith("{"):
        return None
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def entry_of(source: str, told: dict[str, Any], parts: dict[str, str], secrets: Sequence[str]) -> Entry | None:
    """None where all of it was secret. `secrets`: the fleet's, by value; the host has masked what it knows."""
    if "text" not in told:
        return None
    text = "\n".join(mask(line, secrets) for line in str(told["text"]).split("\n"))
    return Entry(source, parts.get(str(told.get("unit")), "?"), int(told["at"]), text)


def shown(entry: Entry, width: int, colour: int | None, zone: tzinfo | None = None) -> str:
    """The entry's lines, each with when, and whose. `width`: of the prefix. `colour`: None without a terminal."""
    when = datetime.fromtimestamp(entry.at / 1e6, zone).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    whose = f"{entry.source} {entry.part}".ljust(width)
    prefix = f"{when} {whose}" if colour is None else f"\x1b[2m{when}\x1b[0m \x1b[{colour}m{whose}\x1b[0m"
    return "\n".join(f"{prefix}  {plain(line)}" for line in entry.text.split("\n"))


def plain(text: str) -> str:
    """Without what a terminal would obey."""
    return _CONTROL.sub("", text.rsplit("\r", 1)[-1] if not text.endswith("\r") else text[:-1])
