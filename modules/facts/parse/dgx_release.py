"""/etc/dgx-release: what the machine was shipped with, and one block of keys more per over-the-air update."""

from __future__ import annotations

import re
from dataclasses import dataclass

from modules.facts.parse.errors import ParseError
from modules.facts.parse.text import lines_of

_PROGRAM = "/etc/dgx-release"


@dataclass(frozen=True)
class Update:
    """One over-the-air update. `date` as it is written: it may be in another language."""

    version: str
    date: str | None


@dataclass(frozen=True)
class DgxRelease:
    """`shipped`: version of the factory image. `updates`: in the order they came; the last is what runs."""

    name: str
    pretty_name: str | None
    shipped: str | None
    serial: str | None
    updates: tuple[Update, ...]

    @property
    def version(self) -> str | None:
        """The current DGX OS version: of the last update, else the shipped one."""
        return self.updates[-1].version if self.updates else self.shipped


def parse_dgx_release(text: str) -> DgxRelease:
    """KEY="value" lines; one vendor's file has neither quotes nor escaped spaces."""
    values: dict[str, str] = {}
    updates: list[Update] = []
    for at, line in enumerate(lines_of(text), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = re.fullmatch(r"\s*([A-Z_]+)=(?:\"(.*)\"|'(.*)'|([^\"'].*)?)\s*", line)
        if match is None:
            raise ParseError(_PROGRAM, 'expected KEY="value"', line=at, text=line)
        key, value = match[1], next((part for part in match.groups()[1:] if part), "").strip()
        if key == "DGX_OTA_VERSION":
            if not re.match(r"\d+(\.\d+)*", value):
                raise ParseError(_PROGRAM, "expected the version of an update", line=at, text=line)
            updates.append(Update(value, None))
        elif key == "DGX_OTA_DATE":
            updates = _dated(updates, value, at, line)
        else:
            values[key] = value
    if "DGX_NAME" not in values:
        raise ParseError(_PROGRAM, "no DGX_NAME", text=text)
    return DgxRelease(
        name=values["DGX_NAME"],
        pretty_name=values.get("DGX_PRETTY_NAME") or None,
        shipped=values.get("DGX_SWBUILD_VERSION") or None,
        serial=values.get("DGX_SERIAL_NUMBER") or None,
        updates=tuple(updates),
    )


def _dated(updates: list[Update], date: str, at: int, line: str) -> list[Update]:
    if not updates or updates[-1].date is not None:
        raise ParseError(_PROGRAM, "the date of an update stands without its version", line=at, text=line)
    return [*updates[:-1], Update(updates[-1].version, date or None)]
