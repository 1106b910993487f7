"""Failure signatures: what a log says when a known thing has gone wrong."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from modules.spec.base import Strict

LogSource = Literal["engine", "build", "kernel", "fetch"]


class Signature(Strict):
    """A known failure.

    `patterns`: regular expressions, each searched line by line; all of them must be found. `where`: the kinds of log
    that can hold them. `meaning` and `action`: what to tell the operator. `certain`: false where healthy hosts print
    the same words at times, so that it only supports another finding.
    """

    patterns: tuple[str, ...] = Field(min_length=1)
    where: tuple[LogSource, ...] = Field(min_length=1)
    meaning: str
    action: str
    certain: bool = True
    source: str
