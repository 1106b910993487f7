"""/etc/os-release."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from modules.facts.parse.errors import ParseError
from modules.facts.parse.text import lines_of

_PROGRAM = "/etc/os-release"


@dataclass(frozen=True)
class OsRelease:
    """`id`: `ubuntu`, `debian`, … `version`: VERSION_ID, None for rolling systems."""

    id: str
    version: str | None
    name: str
    like: tuple[str, ...]


def parse_os_release(text: str) -> OsRelease:
    """Shell-like assignments, quoted or not (os-release(5))."""
    values: dict[str, str] = {}
    for at, line in enumerate(lines_of(text), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        key, equals, value = line.partition("=")
        if not equals:
            raise ParseError(_PROGRAM, "expected KEY=value", line=at, text=line)
        try:
            values[key.strip()] = "".join(shlex.split(value))
        except ValueError as error:
            raise ParseError(_PROGRAM, f"bad quoting ({error})", line=at, text=line) from error
    if "ID" not in values:
        raise ParseError(_PROGRAM, "no ID", text=text)
    return OsRelease(
        id=values["ID"],
        version=values.get("VERSION_ID") or None,
        name=values.get("PRETTY_NAME") or values.get("NAME") or values["ID"],
        like=tuple(values.get("ID_LIKE", "").split()),
    )
