"""The Range header of HTTP, as far as download clients use it."""

from __future__ import annotations

import re

_SINGLE = re.compile(r"^bytes=(\d*)-(\d*)$")


class UnsatisfiableRangeError(ValueError):
    """The range lies outside the file: status 416."""


def parse_range(header: str | None, size: int) -> tuple[int, int] | None:
    """First and last byte of a single range, or None where the whole file is meant.

    Forms that a server may ignore (several ranges, other units) count as the whole file.
    """
    match = _SINGLE.match(header or "")
    if match is None or match[1] == match[2] == "":
        return None
    if match[1] == "":
        first, last = max(size - int(match[2]), 0), size - 1
    else:
        first, last = int(match[1]), min(int(match[2] or size - 1), size - 1)
    if first >= size or first > last:
        raise UnsatisfiableRangeError(header)
    return first, last
