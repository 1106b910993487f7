"""What is written down on this host of one service: release, gate, watchdog, memory. Reads files and asks nothing.

The forms are those of every version of our programs so far, so it tells the truth also where older ones are installed.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside import release_story as story
    from modules.hostside.whose_process import read
else:
    import release_story as story
    from whose_process import read

STATE, SETTINGS, RUN = "/var/lib/tinderbox", "/etc/tinderbox", "/run/tinderbox"
_WATCHDOG = "watchdog"


def document(path: str) -> dict[str, Any] | None:
    """The JSON object in a file; None where there is none that can be read."""
    try:
        found = json.loads(read(path) or "null")
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def services(state: str = STATE) -> list[str]:
    """Those that the ledger knows."""
    try:
        return sorted(entry.name for entry in os.scandir(f"{state}/ledger") if entry.is_dir())
    except OSError:
        return []


def linked(ledger: str, name: str) -> str | None:
    """The release that `current` or `last-good` names."""
    try:
        return os.readlink(f"{ledger}/{name}").removesuffix(".json")  # noqa: PTH115
    except OSError:
        return None


def measured(path: str) -> dict[str, Any] | None:
    """What a gate found, without its samples."""
    found = document(path)
    if not found or not found.get("finished"):
        return None
    judgement = found.get("judgement") or {}
    kept = {name: judgement.get(name) for name in ("verdict", "figures", "lines", "at")}
    return {"release": found.get("release"), "finished": found["finished"], "judgement": kept}


def gates(name: str, current: str | None, state: str = STATE) -> dict[str, Any]:
    """The measurement of the release in force, and the newest one of another, where that came later."""
    folder = f"{state}/gates/{name}"
    own = measured(f"{folder}/{current}.json") if current else None
    try:
        files = [entry for entry in os.scandir(folder) if entry.name.endswith(".json") and entry.is_file()]
    except OSError:
        files = []
    others = sorted((one for one in files if one.name != f"{current}.json"), key=lambda one: one.stat().st_mtime)
    newest = measured(others[-1].path) if others else None
    later = newest is not None and (own is None or str(newest["finished"]) > str(own["finished"]))
    return {"current": own, "later": newest if later else None}


def parts(plan: dict[str, Any] | None) -> dict[str, int] | None:
    """What the memory plan of a release is made of, in bytes by name; null where there is none."""
    if not plan:
        return None
    found = [plan.get("weights"), plan.get("cache"), plan.get("graphs"), *(plan.get("others") or ())]
    return {str(one["name"]): int(one["size"]) for one in found if isinstance(one, dict)}


def written_down(name: str, state: str = STATE, settings: str = SETTINGS, run: str = RUN) -> dict[str, Any]:
    """All of it. What can not be read is null."""
    ledger = f"{state}/ledger/{name}"
    current = linked(ledger, "current")
    entry = document(f"{ledger}/{current}.json") if current else None
    told = story.events(entry)
    restarts = [one for one in told if one.get("event") == story.RESTARTED and one.get("by") == _WATCHDOG]
    return {
        "in_ledger": os.path.isdir(ledger),  # noqa: PTH112
        "current": current,
        "last_good": linked(ledger, "last-good"),
        "standing": None if entry is None else story.standing(entry),
        "last_event": told[-1] if told else None,
        "watchdog": restarts[-1] if restarts else None,
        "pending": document(f"{ledger}/pending"),
        "plan": parts((entry or {}).get("memory_plan")),
        "needs": (document(f"{settings}/{name}.memory.json") or {}).get("needs"),
        "gate": gates(name, current, state),
        "watched": document(f"{run}/generated/{name}"),
        "closed": os.path.exists(f"{run}/drain/{name}"),  # noqa: PTH110
    }
