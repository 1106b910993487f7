"""Let an engine start only when the memory that it will take is there. `ExecStartPre=` of a service's unit.

    memory_gate.py PLAN.json

The plan: `needs`, bytes of MemAvailable without which the start would fail; 0 where that is not known. A GB10 does not
kill what takes too much memory, it wedges, so a start without room is worse than none. What was just stopped may give
its memory back late: a minute is waited. Page cache is dropped where it holds what the GPU will ask for, since CUDA
does not see such memory as free. Exit status: 0 there is room; 1 not, and who has it.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.atomic import read_json
    from modules.hostside.service_unit import run
else:
    from atomic import read_json
    from service_unit import run

WAIT_S = 60
_PAUSE_S = 2.0
_SHOWN = 5
_GIB = 1024**3
_PROC = Path("/proc")


def meminfo(proc: Path = _PROC) -> dict[str, int]:
    """Bytes, by the kernel's names."""
    rows = (line.split() for line in (proc / "meminfo").read_text().splitlines())
    return {words[0].rstrip(":"): int(words[1]) * 1024 for words in rows if len(words) > 1}


def drop_page_cache(proc: Path = _PROC) -> bool:
    """Give the page cache back. False where this is not allowed (in a container)."""
    os.sync()
    try:
        (proc / "sys/vm/drop_caches").write_text("3\n")
    except OSError:
        return False
    return True


def holders(proc: Path = _PROC) -> list[str]:
    """The processes with most memory, largest first, and those on the GPU, which the kernel does not count there."""
    sizes = []
    for status in proc.glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        except OSError:  # it has just ended
            continue
        if "VmRSS" in fields:
            sizes.append((int(fields["VmRSS"].split()[0]) * 1024, fields["Name"].strip(), status.parent.name))
    lines = [f"{name} (pid {pid}): {size / _GIB:.1f} GiB" for size, name, pid in sorted(sizes, reverse=True)[:_SHOWN]]
    asked = run("nvidia-smi", "--query-compute-apps=pid,process_name,used_memory", "--format=csv,noheader")
    return lines + [f"on the GPU: {line.strip()}" for line in (asked or "").splitlines() if line.strip()]


def await_room(needs: int, proc: Path = _PROC, sleep: Callable[[float], None] = time.sleep) -> int:
    """Wait until `needs` bytes are available, a minute at most. Returns MemAvailable as it then is."""
    for waited in range(int(WAIT_S / _PAUSE_S) + 1):
        found = meminfo(proc)
        if found["MemFree"] < needs and (waited == 0 or found["MemAvailable"] >= needs):
            drop_page_cache(proc)
            found = meminfo(proc)
        if found["MemAvailable"] >= needs:
            break
        sleep(_PAUSE_S)
    return found["MemAvailable"]


def main(arguments: list[str]) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", type=Path)
    plan = read_json(parser.parse_args(arguments).plan) or {}
    needs = plan.get("needs")
    if not isinstance(needs, int) or needs <= 0:
        print("memory-gate: there is no memory plan, so nothing was checked")
        return 0
    available = await_room(needs)
    if available >= needs:
        print(f"memory-gate: {available / _GIB:.1f} GiB are available, {needs / _GIB:.1f} GiB are needed")
        return 0
    print(f"memory-gate: refused: {needs / _GIB:.1f} GiB are needed, {available / _GIB:.1f} GiB available. Held by:")
    for line in holders():
        print(f"memory-gate:   {line}")
    print("memory-gate: stop what is not needed; the plan: the run shows it, and the ledger keeps it")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
