"""Asking one of our programs on a host."""

from __future__ import annotations

from collections.abc import Sequence

from pyinfra.api import QuoteString, StringCommand


class AskProgram(StringCommand):
    """Run a program of ours for what it prints, where it is; where it is not, `absent` is the answer.

    A shell command as any other. A survey (`modules.facts.survey`) also takes the parts, and spares the host a shell
    and the start of a Python for each program.
    """

    def __init__(self, python: str, program: str, words: Sequence[str], absent: str = "") -> None:
        asked = (python, program, *map(QuoteString, words))
        if absent:
            super().__init__("if test -e", program, "; then", *asked, "; else echo", QuoteString(absent), "; fi")
        else:
            super().__init__("! test -e", program, "||", *asked)
        self.program, self.words, self.absent = program, tuple(words), absent
