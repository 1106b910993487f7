"""What git says when a checkout or fetch fails."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from modules.facts.parse.errors import ParseError
from modules.facts.parse.text import lines_of

_PROGRAM = "git"
Kind = Literal["missing commit", "missing reference", "missing repository", "unreachable", "other"]

_SIGNS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("missing commit", re.compile(r"fatal: reference is not a tree: (\S+)")),
    ("missing commit", re.compile(r"fatal: remote error: upload-pack: not our ref (\S+)")),
    ("missing reference", re.compile(r"error: pathspec '([^']+)' did not match any file\(s\) known to git")),
    ("missing reference", re.compile(r"fatal: couldn't find remote ref (\S+)")),
    ("missing reference", re.compile(r"warning: Could not find remote branch (\S+) to clone")),
    ("unreachable", re.compile(r"fatal: unable to access '([^']+)': ")),
    ("missing repository", re.compile(r"fatal: repository '([^']+)' not found")),
    ("other", re.compile(r"(?:fatal|error): (.*)")),
)


@dataclass(frozen=True)
class GitError:
    """`what`: the commit, reference or address that git names. A missing tag and a missing commit have other words."""

    kind: Kind
    what: str
    message: str


def parse_git_error(text: str) -> GitError:
    """The first message that is known, else the first `fatal:` or `error:` line."""
    lines = lines_of(text)
    for kind, sign in _SIGNS:
        for line in lines:
            if match := sign.search(line):
                return GitError(kind, match[1], line.strip())
    raise ParseError(_PROGRAM, "no error of git", text=text)
