"""How many loads of a service the load guard has stopped on this host, whichever release it was.

`ledger/<service>/load-stops`. A release's own events tell of its first start alone: one that has served well before
may run out of memory at any later start, too.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.atomic import read_json, write_json
    from modules.hostside.ledger import STATE
else:
    from atomic import read_json, write_json
    from ledger import STATE


def load_stops(service: str, root: Path = STATE) -> int:
    """The count; 0 where none was noted, or the note can not be read."""
    count = (read_json(_path(service, root)) or {}).get("count")
    return count if isinstance(count, int) and count > 0 else 0


def note_load_stop(service: str, root: Path = STATE) -> None:
    """Count one more. Raises `OSError`, as for a full disk."""
    write_json(_path(service, root), {"count": load_stops(service, root) + 1})


def _path(service: str, root: Path) -> Path:
    return root / "ledger" / service / "load-stops"
