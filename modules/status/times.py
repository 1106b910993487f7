"""Moments and spans, as they are written down and as people read them. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def utc(at: float) -> str:
    """Seconds of the epoch, as all that Tinderbox writes down has them."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def span(seconds: float, units: int = 2) -> str:
    """In the largest units that it has: 3 d 4 h."""
    whole = max(0, round(seconds))
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min"
    large, small = (_HOUR, _MINUTE) if whole < _DAY else (_DAY, _HOUR)
    names = ("h", "min") if whole < _DAY else ("d", "h")
    rest = f" {whole % large // small} {names[1]}" if units > 1 else ""
    return f"{whole // large} {names[0]}{rest}"


def ago(at: str, now: str, units: int = 2) -> str:
    """How long one moment lies before another, in the form of `utc`; the moment itself where that has another one."""
    try:
        passed = (datetime.fromisoformat(now) - datetime.fromisoformat(at)).total_seconds()
    except (ValueError, TypeError):
        return at
    return span(passed, units)
