"""`ip link show`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from modules.facts.parse.errors import ParseError
from modules.facts.parse.text import lines_of

_PROGRAM = "ip link"
_HEAD = re.compile(r"(\d+): ([^:@\s]+)(?:@\S+)?: <([^>]*)> mtu (\d+) .*?\bstate (\S+)")
_ADDRESS = re.compile(r"\s+link/(\S+) ([0-9a-f:]+)")


@dataclass(frozen=True)
class Link:
    """An interface. `carrier`: a cable with somebody at its other end (LOWER_UP)."""

    index: int
    name: str
    mtu: int
    state: str
    carrier: bool
    address: str | None


def parse_ip_link(text: str) -> tuple[Link, ...]:
    """Every interface shown."""
    links: list[Link] = []
    for at, line in enumerate(lines_of(text), start=1):
        if not line.strip():
            continue
        if head := _HEAD.match(line):
            links.append(Link(int(head[1]), head[2], int(head[4]), head[5], "LOWER_UP" in head[3].split(","), None))
        elif not line.startswith(" "):
            raise ParseError(_PROGRAM, "expected an interface", line=at, text=line)
        elif links and (address := _ADDRESS.match(line)):
            last = links[-1]
            links[-1] = Link(last.index, last.name, last.mtu, last.state, last.carrier, address[2])
    if not links:
        raise ParseError(_PROGRAM, "no interface", text=text)
    return tuple(links)
