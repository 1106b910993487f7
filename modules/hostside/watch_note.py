"""When a watched service was last seen to generate, for whoever decides whether it is sent requests."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.atomic import read_json, write_json
else:
    from atomic import read_json, write_json

GENERATED = Path("/run/tinderbox/generated")


def note_file(service: str, generated: Path = GENERATED) -> Path:
    """`at`: seconds since 1970; `misses`: checks since then that saw neither a reply nor a counter that moved."""
    return generated / service


def note_check(service: str, misses: int, generated: Path = GENERATED) -> None:
    """Note what the watchdog's newest check saw. A full /run keeps nobody from watching."""
    with suppress(OSError):
        generated.mkdir(parents=True, exist_ok=True)
        path = note_file(service, generated)
        at = time.time() if misses == 0 else (read_json(path) or {}).get("at")
        write_json(path, {"at": at, "misses": misses})
