"""What became of a release, told by the events in its ledger entry. Pure: reads nothing, changes nothing.

A release stands where its events have put it: `new` (never in force), `trying` (being started, not ready yet), `ready`
(it answered; its gate is open), `good`, or `bad`. Only an activation that was forced makes a bad one `trying` again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Entry = Mapping[str, Any]
Event = Mapping[str, Any]

NEW, TRYING, READY, GOOD, BAD = "new", "trying", "ready", "good", "bad"

ACTIVATED, RESTORED, ROLLED_BACK, STOPPED = "activated", "restored", "rolled back", "stopped"
# Good as before, on a machine of which something was upgraded since.
PROVED_AGAIN = "proved again"
FAILED_START, FAILED_GATE, WITHDRAWN = "failed to start", "gate failed", "withdrawn"
# By us, while it served: it goes on standing where it stood.
RESTARTED = "restarted"
# A gate that came to no figure says nothing of the release.
NOT_MEASURED = "gate not measured"
_FAILURES = {FAILED_START, FAILED_GATE, WITHDRAWN}


def events(entry: Entry | None) -> list[Event]:
    """The events of an entry, the oldest first."""
    return list((entry or {}).get("events") or ())


def standing(entry: Entry | None) -> str:
    """Where the release stands: one of the five words above."""
    state = NEW
    for event in events(entry):
        kind = event.get("event")
        if kind in _FAILURES:
            state = BAD
        elif kind == ACTIVATED:
            state = TRYING
        elif kind in {GOOD, PROVED_AGAIN}:
            state = GOOD
        elif kind == READY or (kind == RESTORED and state in {BAD, TRYING}):
            state = READY
    return state


def failure(entry: Entry | None) -> Event | None:
    """The event that made the release bad; None of one that is not."""
    if standing(entry) != BAD:
        return None
    return next(event for event in reversed(events(entry)) if event.get("event") in _FAILURES)


def failures(entry: Entry | None) -> int:
    """How often the release was found bad."""
    return sum(event.get("event") in _FAILURES for event in events(entry))


def was_good(entry: Entry | None) -> bool:
    """Whether it ever was."""
    return any(event.get("event") in {GOOD, PROVED_AGAIN} for event in events(entry))


def put_back(entry: Entry | None) -> bool:
    """Whether it is in force because another release made way for it, and not because it was wanted."""
    ways = [event for event in events(entry) if event.get("event") in {ACTIVATED, RESTORED}]
    return bool(ways) and (ways[-1]["event"] == RESTORED or bool(ways[-1].get("instead")))


def may_become_good(entry: Entry | None) -> bool:
    """Whether it was seen ready since it was put in force. One that failed its gate and was left there may recover."""
    failed = failure(entry)
    return standing(entry) in {READY, GOOD} or (failed is not None and failed["event"] == FAILED_GATE)


def bars(entry: Entry | None, release: str, last_good: str | None) -> Event | None:
    """Why the release is not tried again unless that is forced; None where it may be.

    The last good one failed for a reason that lies outside of it. One that failed its gate while there was nothing to
    go back to was left in force, and is measured again.
    """
    failed = failure(entry)
    if failed is None or release == last_good or (failed["event"] == FAILED_GATE and last_good is None):
        return None
    return failed
