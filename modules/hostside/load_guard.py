"""Keep an engine that loads from taking the memory without which its host wedges.

    load_guard.py CONTAINER MEMORY.json

A GB10 does not kill what takes too much: it stops answering. `await_ready.py` starts this beside itself, so it lives
from the start of the engine until that is ready, or has failed, and never longer. Below the system's reserve of free
memory the page cache is given back, since CUDA does not see cache as free; below a quarter of the reserve that is
available the engine is killed, which is the only thing that gives its memory back at once.

It keeps itself in memory, asks no daemon when it has to act, and acts before it speaks. Exit status: 0 the engine
has ended or the start is over; 3 the engine was stopped.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.atomic import read_json
    from modules.hostside.memory_room import PROC, Room, cgroups_of, drop_page_cache, room
    from modules.hostside.service_unit import run
else:
    from atomic import read_json
    from memory_room import PROC, Room, cgroups_of, drop_page_cache, room
    from service_unit import run

STOPPED = 3
MARK = "load-guard: "
# What a plan leaves to the system, where no memory file tells it (modules/memory/plan.py: SYSTEM_RESERVE).
RESERVE = 8 * 1024**3
# Of the reserve; the system itself lives in the rest of it. Unverified on hardware.
STOP_SHARE = 0.25
# Of the mark: less to give back is not worth the reading anew.
WORTH = 1 / 16
# A fast disk loads 1 GB meanwhile.
PAUSE_S = 0.1
_FIND_S = 0.5
# Dropping finds only what came into the cache since the last time.
_DROP_PAUSE_S = 1.0
_TELL_S = 30.0
_GIB = 1024**3
_LOCK_ALL = 1 | 2  # MCL_CURRENT | MCL_FUTURE
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG


@dataclass(frozen=True)
class Marks:
    """In bytes. `pressure`: of free memory, below which the page cache goes. `stop`: of available memory."""

    pressure: int
    stop: int

    @classmethod
    def of(cls, memory_file: Path) -> Marks:
        """By the reserve that the service's memory file names."""
        reserve = (read_json(memory_file) or {}).get("reserve")
        size = reserve if isinstance(reserve, int) and reserve > 0 else RESERVE
        return cls(size, round(STOP_SHARE * size))


@dataclass
class Engine:
    """The container of the engine: `pid` of its first process, with whose end all others of it end."""

    container: str
    bounds: list[Path] = field(default_factory=cgroups_of)
    handle: int | None = None

    def find(self) -> None:
        """Look for it until it is there; docker may take a while to start it."""
        while self.handle is None:
            pid = (run("docker", "inspect", "--format", "{{.State.Pid}}", self.container) or "").strip()
            if pid.isdigit() and pid != "0":
                with suppress(OSError):
                    handle = os.pidfd_open(int(pid))
                    # The list is replaced as a whole, since the other thread reads it.
                    self.bounds = [*self.bounds, *cgroups_of(pid)]
                    self.handle = handle
            time.sleep(_FIND_S)

    def ended(self) -> bool:
        """Whether it was there and is no more."""
        return self.handle is not None and bool(select.select([self.handle], [], [], 0)[0])

    def kill(self) -> bool:
        """End it at once. False where there is none yet."""
        if self.handle is None:
            return False
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.handle, signal.SIGKILL)
        return True


def watch(
    engine: Engine,
    marks: Marks,
    press: Callable[[], object],
    look: Callable[[list[Path]], Room] = room,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Watch until the engine has ended. `press`: asked for when the page cache is to be given back; does not wait."""
    while not engine.ended():
        found = look(engine.bounds)
        if found.available < marks.stop and engine.kill():
            say(
                f"stopped the engine: it was loading, and {found.available / _GIB:.2f} GiB of memory were left, less "
                f"than the {marks.stop / _GIB:.2f} GiB without which this host stops answering"
            )
            return STOPPED
        if found.free < marks.pressure and found.available - found.free > WORTH * marks.pressure:
            press()
        sleep(PAUSE_S)
    return 0


class Dropper:
    """Gives the page cache back in a thread of its own: that can take seconds, and the watch has to go on."""

    def __init__(self, drop: Callable[[], bool] = lambda: drop_page_cache(sync=False)) -> None:
        self._drop, self._wanted, self._told_at = drop, threading.Event(), float("-inf")

    def press(self) -> None:
        """Ask for it."""
        self._wanted.set()

    def serve(self) -> None:
        """Do what is asked for, for ever."""
        while True:
            self._wanted.wait()
            self.once()
            time.sleep(_DROP_PAUSE_S)
            self._wanted.clear()

    def once(self) -> None:
        """Give it back, and have what is free in large pieces, as the driver asks for it."""
        if not self._drop():
            return
        with suppress(OSError):
            (PROC / "sys/vm/compact_memory").write_text("1\n")
        if time.monotonic() - self._told_at > _TELL_S:
            self._told_at = time.monotonic()
            say("gave the page cache back: the engine loads, and little memory is free")


def hold_out() -> None:
    """Stay in memory, be the last to be killed for it, and come before others at the processor; as far as allowed."""
    threading.stack_size(256 * 1024)
    ctypes.CDLL(None).mlockall(_LOCK_ALL)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("-1000\n")
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -15)


def end_with(parent: int) -> None:
    """Have the kernel end this program with the one that started it."""
    ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGTERM)
    if os.getppid() != parent:
        sys.exit(0)


def say(message: str) -> None:
    """One line for the journal."""
    sys.stdout.write(f"{MARK}{message}\n")
    sys.stdout.flush()


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("container")
    parser.add_argument("memory", type=Path)
    parser.add_argument("--parent", type=int, default=os.getppid(), help="with which this ends")
    options = parser.parse_args()
    end_with(options.parent)
    hold_out()
    engine, dropper = Engine(options.container), Dropper()
    for work in (engine.find, dropper.serve):
        threading.Thread(target=work, daemon=True).start()
    return watch(engine, Marks.of(options.memory), dropper.press)


if __name__ == "__main__":
    sys.exit(main())
