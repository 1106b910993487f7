"""Which blocks of unfinished pieces are on the disk, so that a host that was cut off goes on from there."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.atomic import read_json, write_json
    from modules.hostside.swarm import Swarm
else:
    from atomic import read_json, write_json
    from swarm import Swarm


_BOOT = Path("/proc/sys/kernel/random/boot_id")


def recalled(memory: Path, piece_bytes: int) -> dict[int, list[bool]]:
    """What `remember` wrote; nothing after a restart of the host, which may have lost some of it."""
    found = read_json(memory)
    if found is None or found.get("boot") != _BOOT.read_text() or found.get("piece_bytes") != piece_bytes:
        return {}
    unfinished = found.get("unfinished")
    blocks = unfinished if isinstance(unfinished, dict) else {}
    return {int(number): [mark == "1" for mark in str(marks)] for number, marks in blocks.items()}


def remember(swarm: Swarm, memory: Path, parts: list[Path]) -> None:
    """Flush what came, and write down which blocks of unfinished pieces are on the disk."""
    blocks = {str(number): "".join("01"[mark] for mark in marks) for number, marks in swarm.unfinished().items()}
    for part in parts:
        if part.exists():
            descriptor = os.open(part, os.O_RDONLY)
            try:
                os.fdatasync(descriptor)
            finally:
                os.close(descriptor)
    # Where the disk is full, libtorrent says so, too, and by the file.
    with suppress(OSError):
        write_json(memory, {"boot": _BOOT.read_text(), "piece_bytes": swarm.request.piece_bytes, "unfinished": blocks})
