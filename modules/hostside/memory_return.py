"""Wait until the memory that an engine had has come back. `ExecStopPost=` of its unit, so a stop ends with it.

    memory_return.py MEMORY.json BEFORE

A driver gives unified memory back some time after its process has ended, and a start meanwhile finds too little.
BEFORE is a file with what was available before the start, as the memory gate noted it; without one, what the plan
asks for is waited for. Services that were started since then have theirs, which is not waited for. It ends at once
when that is there, a while after nothing more comes back, and after a minute in any case. Always exit status 0: a
stop is over also where memory is lost, and then this says how much.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.atomic import read_json
    from modules.hostside.memory_room import cgroups_of, room
else:
    from atomic import read_json
    from memory_room import cgroups_of, room

WAIT_S = 60
_PAUSE_S = 0.5
# Nothing more has come back for so long, but for what a host does by itself.
_STILL_S = 15.0
_STILL = 64 * 1024**2
# Caches of the kernel grow, and others work meanwhile.
_SLACK = 1024**3
_LEAST_SHARE = 0.9
_GIB = 1024**3


def wanted(memory_file: Path, before: Path) -> int:
    """How much shall be available again, in bytes; 0 where nothing is known."""
    try:
        then = int(before.read_text())
    except (OSError, ValueError):
        needs = (read_json(memory_file) or {}).get("needs")
        return needs if isinstance(needs, int) else 0
    left = max(0, then - taken_since(memory_file, before))
    return max(left - _SLACK, round(_LEAST_SHARE * left))


def taken_since(memory_file: Path, before: Path) -> int:
    """What services beside this one were to take by their plans that were started after it, and run."""
    began = before.stat().st_mtime_ns
    later = [note.stem for note in before.parent.glob("*.before") if note.stat().st_mtime_ns > began]
    plans = [read_json(memory_file.with_name(f"{service}.memory.json")) or {} for service in later]
    return sum(needs for needs in (plan.get("needs") for plan in plans) if isinstance(needs, int))


def await_return(
    wish: int,
    look: Callable[[], int],
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """Wait for `wish` bytes. Returns what is available in the end."""
    began = still_since = clock()
    most = found = look()
    while found < wish and clock() - began < WAIT_S and clock() - still_since < _STILL_S:
        sleep(_PAUSE_S)
        found = look()
        if found > most + _STILL:
            most, still_since = found, clock()
    return found


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("memory", type=Path)
    parser.add_argument("before", type=Path)
    options = parser.parse_args()
    began, wish, bounds = time.monotonic(), wanted(options.memory, options.before), cgroups_of()
    found = await_return(wish, lambda: room(bounds).available)
    options.before.unlink(missing_ok=True)
    waited = f"after {time.monotonic() - began:.0f} s"
    if found >= wish:
        print(f"memory-return: {found / _GIB:.1f} GiB are available again {waited}")
    else:
        print(
            f"memory-return: {(wish - found) / _GIB:.1f} GiB of the memory have not come back {waited}: "
            f"{found / _GIB:.1f} GiB are available, {wish / _GIB:.1f} GiB were to be"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
