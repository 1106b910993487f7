"""Let an engine start only when the memory that it will take is there. `ExecStartPre=` of a service's unit.

    memory_gate.py PLAN.json [--beside SERVICES.json] [--before FILE]

The plan: `needs`, bytes of MemAvailable without which the start would fail; 0 where that is not known. `engines`:
patterns of the processes of engines, none of which may run but in the other `services` that SERVICES.json names, whom
the plan counts in. Where those are several, one loads at a time (`load_turn.py`), so this waits for its turn before it
looks at the memory. A GB10 does not kill what takes too much memory, it wedges, so a start without room is worse than
none. What was just stopped may give its memory back late: a minute is waited. Page cache is dropped where it holds what
the GPU will ask for, since CUDA does not see such memory as free. Nothing is ever killed here. Exit status: 0 there is
room; 1 not, and who has it. What was available is noted in FILE, for `memory_return.py`.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.atomic import read_json
    from modules.hostside.engine_processes import EngineProcess, engine_processes
    from modules.hostside.load_turn import Turn
    from modules.hostside.memory_room import cgroups_of, drop_page_cache, room
    from modules.hostside.service_unit import run
else:
    from atomic import read_json
    from engine_processes import EngineProcess, engine_processes
    from load_turn import Turn
    from memory_room import cgroups_of, drop_page_cache, room
    from service_unit import run

WAIT_S = 60
_PAUSE_S = 2.0
_SHOWN = 5
_GIB = 1024**3
_PROC = Path("/proc")


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


def await_room(
    needs: int, proc: Path = _PROC, sleep: Callable[[float], None] = time.sleep, bounds: Iterable[Path] | None = None
) -> int:
    """Wait until `needs` bytes are available, a minute at most. Returns what then is.

    `bounds`: control groups that bound the engine, too; by default those of this process.
    """
    within = list(cgroups_of() if bounds is None else bounds)
    for waited in range(int(WAIT_S / _PAUSE_S) + 1):
        found = room(within, proc)
        if found.free < needs and (waited == 0 or found.available >= needs):
            drop_page_cache(proc)
            found = room(within, proc)
        if found.available >= needs:
            break
        sleep(_PAUSE_S)
    return found.available


def others(
    patterns: Iterable[str],
    beside: Iterable[str],
    look: Callable[[Iterable[str]], list[EngineProcess]] = engine_processes,
    sleep: Callable[[float], None] = time.sleep,
) -> list[EngineProcess]:
    """Engines that the plan does not count in. One that is just ending gets a minute for it."""
    found: list[EngineProcess] = []
    for _ in range(int(WAIT_S / _PAUSE_S) + 1):
        found = [one for one in look(patterns) if one.service is None or one.service not in set(beside)]
        if not found:
            break
        sleep(_PAUSE_S)
    return found


def note(before: Path | None, available: int) -> None:
    """Keep what is available for the end of this start; without it the stop only waits less exactly."""
    if before is not None:
        with suppress(OSError):
            before.parent.mkdir(parents=True, exist_ok=True)
            before.write_text(f"{available}\n")


def turn_awaited(service: str, beside: Path | None) -> str | None:
    """Have this service's turn to load. Returns for whom it was waited in vain, in words."""
    turn = Turn.of(service, beside) if beside is not None else None
    if turn is None or len(turn.order) < 2:
        return None
    return turn.take(os.environ.get("INVOCATION_ID", ""), lambda told: print(f"memory-gate: {told}", flush=True))


def main(arguments: list[str]) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", type=Path)
    parser.add_argument("--beside", type=Path)
    parser.add_argument("--before", type=Path)
    options = parser.parse_args(arguments)
    plan = read_json(options.plan) or {}
    needs, engines = plan.get("needs"), _words(plan.get("engines"))
    beside = set(_words((read_json(options.beside) or {}).get("services"))) if options.beside else set()
    late = turn_awaited(str(plan.get("service")), options.beside)
    if late is not None:
        print(f"memory-gate: refused: {late}, was waited for in vain: look at that one")
        return 1
    strangers = others(engines, beside - {str(plan.get("service"))}) if engines else []
    if strangers:
        told = "; ".join(one.text() for one in strangers)
        print(f"memory-gate: refused: another engine runs here, which the memory plan does not count in: {told}")
        print("memory-gate: stop it, or have it run as a service of the same fleet file; nothing was killed")
        return 1
    if not isinstance(needs, int) or needs <= 0:
        note(options.before, room(cgroups_of()).available)
        print("memory-gate: there is no memory plan, so no memory was asked for")
        return 0
    available = await_room(needs)
    if available >= needs:
        note(options.before, available)
        print(f"memory-gate: {available / _GIB:.1f} GiB are available, {needs / _GIB:.1f} GiB are needed")
        return 0
    print(f"memory-gate: refused: {needs / _GIB:.1f} GiB are needed, {available / _GIB:.1f} GiB available. Held by:")
    for line in holders():
        print(f"memory-gate:   {line}")
    print("memory-gate: stop what is not needed; the plan: the run shows it, and the ledger keeps it")
    return 1


def _words(value: object) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
