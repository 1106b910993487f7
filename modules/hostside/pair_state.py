"""What this host is of services that span hosts, as one JSON object. Changes nothing.

    pair_state.py SERVICE [FILE...]

`key`: fingerprint of the members' key. `files`: path → sha256 of those named. `order`, `report`: what the head and a
worker last said, where the program that keeps the hosts together is alive.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside import pair_place as place
    from modules.hostside.ledger import Ledger
    from modules.hostside.service_unit import unit_state
else:
    import pair_place as place
    from ledger import Ledger
    from service_unit import unit_state

FRESH_S = 10.0


def sha256(path: Path) -> str | None:
    """Hash of a file, or None."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


def state(service: str, files: list[str]) -> dict[str, Any]:
    """The whole answer."""
    ledger, unit = Ledger(service), place.unit_of(service)
    agent = unit_state(f"tinderbox-pair@{service}.service")
    known = place.published(service, FRESH_S)
    key = sha256(place.key_file(service))
    return {
        "key": None if key is None else key[:12],
        "files": {path: sha256(Path(path)) for path in files},
        "agent": agent.get("ActiveState", "unknown"),
        "agent_enabled": agent.get("UnitFileState") == "enabled",
        "current": ledger.linked("current"),
        "last_good": ledger.linked("last-good"),
        "active": unit.active,
        "enabled": unit.enabled,
        "order": known.get("order"),
        "report": known.get("report"),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(state(sys.argv[1], sys.argv[2:])) + "\n")
