"""Failure signatures: what a log says when a known thing has gone wrong."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from modules.spec.base import Name, Strict

# `machine`: our own words for what a host's figures show (modules/diagnosis/observations.py); `connection`: what the
# controller was told instead of an answer.
LogSource = Literal["engine", "build", "kernel", "fetch", "machine", "connection"]


class Signature(Strict):
    """A known failure.

    `patterns`: regular expressions, each searched line by line; all of them must be found. `where`: the kinds of log
    that can hold them. `meaning` and `action`: what to tell the operator. `certain`: false where healthy hosts print
    the same words at times, so that it only supports another finding. `unless`: a line that takes it back. `last`: the
    line must be the last one of its log, as with what hangs. `yields_to`: signatures that say more; where one of them
    is found as well, this one is its evidence. `supports`: signatures without one of which this one means nothing.
    `general`: says only that something failed, so it is told where nothing else is found.
    """

    patterns: tuple[str, ...] = Field(min_length=1)
    where: tuple[LogSource, ...] = Field(min_length=1)
    meaning: str
    action: str
    certain: bool = True
    unless: tuple[str, ...] = ()
    last: bool = False
    yields_to: tuple[Name, ...] = ()
    supports: tuple[Name, ...] = ()
    general: bool = False
    source: str
