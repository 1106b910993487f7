"""A full file system, in the words of whatever program met it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from modules.facts.parse.errors import ParseError
from modules.facts.parse.text import lines_of

_PROGRAM = "no space"
_WORDS = "No space left on device"
_COREUTILS = re.compile(r"^([\w.-]+): .*?'([^']+)': " + _WORDS)
_PYTHON = re.compile(r"\[Errno 28\] " + _WORDS + r"(?:: '([^']+)')?")
_GO = re.compile(r"(?:write|open|mkdir|copy) (/\S+): no space left on device")


@dataclass(frozen=True)
class NoSpace:
    """Who met it and where, as far as the message tells."""

    program: str | None
    path: str | None


def parse_no_space(text: str) -> NoSpace:
    """The first such message; a text without one is an error."""
    for line in lines_of(text):
        if coreutils := _COREUTILS.match(line.strip()):
            return NoSpace(coreutils[1], coreutils[2])
        if python := _PYTHON.search(line):
            return NoSpace("python", python[1])
        if go := _GO.search(line):
            return NoSpace(None, go[1])
        if _WORDS.lower() in line.lower():
            return NoSpace(None, None)
    raise ParseError(_PROGRAM, "no message of a full file system", text=text)
