"""The one error of all parsers."""

from __future__ import annotations

_SHOWN = 120


class ParseError(ValueError):
    """A program's output is not what its parser knows.

    `program`: whose output. `what`: what is wrong, in words for an operator. `line`: 1-based line of the output.
    `text`: the offending text, shown shortened.
    """

    def __init__(self, program: str, what: str, *, line: int | None = None, text: str | None = None) -> None:
        self.program = program
        self.what = what
        self.line = line
        self.text = text
        where = "" if line is None else f" line {line}:"
        shown = "" if text is None else f": {text.strip()[:_SHOWN]!r}"
        super().__init__(f"{program}:{where} {what}{shown}")
