"""The services of this host's ledger, with their releases, as one JSON object: one round trip. Changes nothing."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside import release_story as story
    from modules.hostside.activation import read_pending
    from modules.hostside.drain import Door
    from modules.hostside.ledger import STATE, Ledger, uptime
    from modules.hostside.service_unit import unit_name, unit_state
else:
    import release_story as story
    from activation import read_pending
    from drain import Door
    from ledger import STATE, Ledger, uptime
    from service_unit import unit_name, unit_state


def release(entry: dict[str, Any]) -> dict[str, Any]:
    """What became of one release."""
    failed = story.failure(entry)
    ways = [event for event in story.events(entry) if event["event"] in {story.ACTIVATED, story.RESTORED, "installed"}]
    return {
        "standing": story.standing(entry),
        "good": story.was_good(entry),
        "put_back": story.put_back(entry),
        "since": ways[-1]["at"] if ways else None,
        "failure": f"{failed['event']}: {failed.get('note')}" if failed is not None else None,
    }


def proved_s(ledger: Ledger, unit: dict[str, str]) -> float | None:
    """For how long the release in force has served since it was found good, in seconds; None where it does not so."""
    current = ledger.linked("current")
    entry = ledger.entry(current) if current is not None else None
    if current is None or current != ledger.linked("last-good") or unit.get("ActiveState") != "active":
        return None
    good = [event for event in story.events(entry) if event["event"] in {story.GOOD, story.PROVED_AGAIN}]
    entered = int(unit.get("ActiveEnterTimestampMonotonic") or 0) / 1e6
    if story.standing(entry) != story.GOOD or not good or not entered:
        return None
    boot, up_s = uptime()
    if "boot" in good[-1]:
        # What was found good before this boot has served since its start in it.
        proof = float(good[-1]["up_s"]) if good[-1]["boot"] == boot else 0.0
        return max(0.0, up_s - max(entered, proof))
    # Noted by an earlier version. A clock that was set back since says nothing; the other one is never set.
    since_proof = datetime.now(UTC) - datetime.fromisoformat(good[-1]["at"])
    return max(0.0, min(since_proof.total_seconds(), up_s - entered))


def service(name: str, root: Path = STATE) -> dict[str, Any]:
    """All of one service."""
    ledger, unit = Ledger(name, root), unit_state(unit_name(name))
    pending = read_pending(ledger)
    entries = {path.stem: ledger.entry(path.stem) for path in ledger.directory.glob("*.json") if not path.is_symlink()}
    readable = {name: entry for name, entry in entries.items() if entry is not None and "events" in entry}
    return {
        "active": unit.get("ActiveState", "unknown"),
        "enabled": unit.get("UnitFileState") == "enabled",
        "current": ledger.linked("current"),
        "last_good": ledger.linked("last-good"),
        "pending": pending.release if pending is not None else None,
        "invocation": unit.get("InvocationID"),
        "proved_s": proved_s(ledger, unit),
        "closed": Door(name).is_closed,
        "releases": {name: release(entry) for name, entry in readable.items()},
    }


def services(root: Path = STATE) -> dict[str, Any]:
    """Every service that this host has a ledger of."""
    folder = root / "ledger"
    names = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    return {name: service(name, root) for name in names}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(services()) + "\n")
