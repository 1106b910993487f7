"""What the machine was when a service's server was started: a server keeps much of that until it is started again.

`ledger/<service>/started`, written before each start. It counts for the very start that it names, and for no other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.atomic import read_json, write_json
    from modules.hostside.ledger import Ledger
    from modules.hostside.version_changes import Versions
else:
    from atomic import read_json, write_json


def write_start(ledger: Ledger, invocation: str, versions: Versions) -> None:
    """Note it. `invocation`: systemd's id of this start."""
    write_json(ledger.directory / "started", {"invocation": invocation, "versions": dict(versions)})


def read_start(ledger: Ledger, invocation: str | None) -> Versions | None:
    """What it was at that start; None where that is not known, as of a unit from before there was such a note."""
    found = read_json(ledger.directory / "started")
    versions = (found or {}).get("versions")
    if found is None or not invocation or found.get("invocation") != invocation:
        return None
    return versions if isinstance(versions, dict) else None
