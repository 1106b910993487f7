"""Whether all hosts of a release are there and have it, before anything of what serves is stopped for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside import pair_place as place
else:
    import pair_place as place

# A program that was just started anew connects within seconds.
WAIT_S = 60.0
FRESH_S = 10.0
_PAUSE_S = 1.0


def missing(known: Mapping[str, Any], workers: tuple[str, ...], release: str) -> str:
    """What of the workers is not there; empty when nothing is missing. `known`: what pair_agent.py has told."""
    if not known:
        return "the program that keeps its hosts together has said nothing yet"
    for name in workers:
        report = (known.get("reports") or {}).get(name)
        if report is None:
            return f"{name} is not connected"
        if release not in (report.get("holds") or ()):
            return f"{name} does not have it in its ledger"
    return ""


def await_members(service: str, entry: Mapping[str, Any], sleep: Callable[[float], None] = time.sleep) -> str:
    """Wait for a while. Returns what is missing then; empty at once for a release of one host."""
    members = (entry.get("release") or {}).get("members") or ()
    workers = tuple(str(one["host"]) for one in members)[1:]
    deadline = time.monotonic() + WAIT_S
    while workers:
        why = missing(place.published(service, FRESH_S), workers, str(entry["id"]))
        if not why or time.monotonic() >= deadline:
            return why
        sleep(_PAUSE_S)
    return ""
