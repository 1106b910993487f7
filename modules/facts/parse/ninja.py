"""The end of a failed ninja build."""

from __future__ import annotations

import re
from dataclasses import dataclass

from modules.facts.parse.errors import ParseError
from modules.facts.parse.text import lines_of

_PROGRAM = "ninja"
_FAILED = re.compile(r"FAILED: (?:\[code=(\d+)\] )?(\S+)")
_PROGRESS = re.compile(r"\[(\d+)/(\d+)\] ")
# 128 + SIGKILL. The out-of-memory killer sends it, and ninja then prints no word of it.
_KILLED = 137


@dataclass(frozen=True)
class NinjaFailure:
    """The first target that failed. `killed`: its compiler did not fail, it was killed, mostly for want of memory."""

    target: str
    code: int | None
    killed: bool
    done: int
    total: int


def parse_ninja_failure(text: str) -> NinjaFailure:
    """A build that went well has no failure: an error."""
    done = total = 0
    for line in lines_of(text):
        if progress := _PROGRESS.match(line):
            done, total = int(progress[1]), int(progress[2])
        elif failed := _FAILED.match(line):
            code = None if failed[1] is None else int(failed[1])
            killed = code == _KILLED or (code is None and re.search(r"^Killed\b|: Killed$", text, re.M) is not None)
            return NinjaFailure(failed[2], code, killed, done, total)
    raise ParseError(_PROGRAM, "no failed target", text=text)
