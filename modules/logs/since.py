"""Since when: a span or a moment, as people write it. Pure."""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta

_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_SPAN = re.compile(r"(\d+(?:\.\d+)?) ?(s|min|m|h|d|w)")
_CLOCK = re.compile(r"\d{1,2}:\d\d(:\d\d)?")
FORMS = "90s, 10m, 2h, 3d, 21:30, today, 2026-11-30, 2026-11-30T21:30 (of this machine's time zone), …+00:00, …Z"


class SinceError(ValueError):
    """A moment that is not understood."""


def since_of(text: str, now: datetime) -> float:
    """Seconds of the epoch. `now`: with its time zone, in which moments without one are.

    Raises `SinceError`: with the forms that are understood.
    """
    text = text.strip()
    spans = _SPAN.fullmatch(text)
    if spans is not None:
        return (now - timedelta(seconds=float(spans[1]) * _UNITS[spans[2]])).timestamp()
    if text == "today":
        return now.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
    try:
        if _CLOCK.fullmatch(text):
            # With two digits for the hour, as the standard has it.
            clock = time.fromisoformat(text if text[1] != ":" else f"0{text}")
            moment = datetime.combine(now.date(), clock, now.tzinfo)
            # Who asks after midnight means the evening before.
            return (moment if moment <= now else moment - timedelta(days=1)).timestamp()
        found = datetime.fromisoformat(text)
    except ValueError:
        raise SinceError(f"--since {text!r} is not understood; forms are: {FORMS}") from None
    return (found if found.tzinfo is not None else found.replace(tzinfo=now.tzinfo)).timestamp()
