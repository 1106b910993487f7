"""The note of the server whose place a service takes: what `predecessor.py` stops and starts again by it.

`undo/adopted/<service>.json`. `state`: `chosen` (it makes way at the service's next start), `stopped` (it has), `back`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.atomic import read_json, write_text
    from modules.hostside.ledger import STATE
else:
    from atomic import read_json, write_text
    from ledger import STATE

CHOSEN, STOPPED, BACK = "chosen", "stopped", "back"
Record = dict[str, Any]


def note_file(service: str, state: Path = STATE) -> Path:
    """Where the note of a service's predecessor lies."""
    return state / "undo" / "adopted" / f"{service}.json"


def noted(service: str, state: Path = STATE) -> Record | None:
    """The note, or None where the service has taken nobody's place."""
    found: Record | None = read_json(note_file(service, state))
    return found


def write(service: str, record: Mapping[str, Any], state: Path = STATE) -> None:
    """Keep the note; it can hold secrets, as the server's own environment does."""
    path = note_file(service, state)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_text(path, json.dumps(record, indent=1) + "\n", 0o600)


def chosen(state: Path = STATE) -> Iterator[tuple[str, Record]]:
    """Services that are to take a server's place, with their notes."""
    for path in sorted((state / "undo" / "adopted").glob("*.json")):
        record = read_json(path)
        if record is not None and record.get("state") == CHOSEN:
            yield path.stem, record


def service_to_come(pid: int, container: str | None, proc: Path = Path("/proc"), state: Path = STATE) -> str | None:
    """The service that takes the place of a process's server; None: it is nobody's predecessor."""
    for service, record in chosen(state):
        if container is not None and container == record.get("container"):
            return service
        try:
            groups = (proc / str(pid) / "cgroup").read_text()
        except OSError:  # it has just ended
            return None
        if container is None and any(f"/{unit}" in groups for unit in record["units"]):
            return service
    return None
