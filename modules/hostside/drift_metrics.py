"""What the last check for drift found, for Prometheus, on the host that runs it for its fleet.

    /var/lib/tinderbox/drift/<fleet>.json   `fleet`, `hosts`: name → `state` and `differences`; its time is the file's

A host that could not be looked at wholly has a state, and no number of differences.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.atomic import read_json
    from modules.hostside.exposition import Family
    from modules.hostside.ledger import STATE
else:
    from atomic import read_json
    from exposition import Family
    from ledger import STATE

STATES = ("same", "differs", "refused", "unknown")
_LOOKED_AT = {"same", "differs"}


def drift_families(root: Path = STATE) -> list[Family]:
    """Of every fleet whose check leaves its result here; labels name the fleet and the host that it is about."""
    states = Family("tinderbox_drift_state", "1 for what the last check of the fleet found of a host.")
    count = Family("tinderbox_drift_differences", "In how many points a host differs from the fleet file.")
    at = Family("tinderbox_drift_checked_timestamp_seconds", "When the fleet was last checked for drift.")
    for path in sorted((root / "drift").glob("*.json")):
        found: dict[str, Any] = read_json(path) or {}
        fleet, hosts = found.get("fleet"), found.get("hosts")
        if not isinstance(fleet, str) or not isinstance(hosts, dict):
            continue
        at.add(path.stat().st_mtime, fleet=fleet)
        for host, seen in hosts.items():
            state = seen.get("state")
            for one in STATES:
                states.add(float(one == state), fleet=fleet, host=host, state=one)
            if state in _LOOKED_AT:
                count.add(float(len(seen.get("differences") or ())), fleet=fleet, host=host)
    return [states, count, at]
