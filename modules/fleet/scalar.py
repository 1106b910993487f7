"""Scalars by the rules of YAML 1.2, which editors check by: `on` is a word there, and `22:22` no number in base 60."""

from __future__ import annotations

import re

Scalar = str | int | float | bool | None

_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGERS = ((re.compile(r"[-+]?[0-9]+"), 10), (re.compile(r"0x[0-9a-fA-F]+"), 16), (re.compile(r"0o[0-7]+"), 8))
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")


class WrittenInt(int):
    """A whole number that remembers how it was written, for where text is wanted: `007` stays `007`."""

    text: str

    def __str__(self) -> str:
        return self.text


class WrittenFloat(float):
    """A number that remembers how it was written, for where text is wanted: a version of `1.10` stays `1.10`."""

    text: str

    def __str__(self) -> str:
        return self.text


def _int(text: str, base: int) -> WrittenInt:
    number = WrittenInt(text, base)
    number.text = text
    return number


def _float(text: str) -> WrittenFloat:
    number = WrittenFloat(text)
    number.text = text
    return number


def read_scalar(text: str) -> Scalar:
    """Read a plain (unquoted) scalar."""
    if text in _WORDS:
        return _WORDS[text]
    for form, base in _INTEGERS:
        if form.fullmatch(text):
            return _int(text, base)
    return _float(text) if _FLOAT.fullmatch(text) else text
