"""The releases of services with all that they consist of, for who asks for their history. Changes nothing.

    history_state.py SERVICE...

One JSON object. What was measured comes without its samples. What can not be learned is null, never guessed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside import release_story as story
    from modules.hostside.ledger import STATE, Ledger
    from modules.hostside.report_state import measurements, releases
    from modules.hostside.service_unit import unit_name, unit_state
else:
    import release_story as story
    from ledger import STATE, Ledger
    from report_state import measurements, releases
    from service_unit import unit_name, unit_state


def whole(ledger: Ledger, told: dict[str, Any]) -> dict[str, Any]:
    """A release with its content. The environment of the ledger holds no secrets."""
    entry = ledger.entry(told["id"])
    return {
        "id": told["id"],
        "events": told["events"],
        "content": (entry or {}).get("release") or {},
        "standing": story.standing(entry),
        "failure": story.failure(entry),
        "proved_on": (entry or {}).get("proved_on"),
    }


def service(name: str, root: Path = STATE) -> dict[str, Any]:
    """All of one service."""
    ledger = Ledger(name, root)
    return {
        "active": unit_state(unit_name(name)).get("ActiveState", "unknown"),
        "current": ledger.linked("current"),
        "last_good": ledger.linked("last-good"),
        "releases": [whole(ledger, told) for told in releases(ledger)],
        "measurements": [one | {"samples": {}} for one in measurements(root / "gates" / name, None)],
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps({name: service(name) for name in sys.argv[1:]}) + "\n")
