"""Hold this host for one run, as long as that run is there: another controller's is told who holds it.

    hold_host.py HOLDER    HOLDER: JSON that says who that is

Prints one line of JSON, and then holds the host until its standard input ends or is silent for too long: with the SSH
connection of its run, however that ends. `holds`: whether it does; `holder`: who does otherwise. It is run before our
programs are on the host, from its text; what holds a host is so the same for every version of Tinderbox.

`lock` in HOLDER names the lock of the run's own controller, and of no other (modules/converge/lock.py), or else that
very run. Who comes with the same one holds that, so whoever had the host under that name is gone, or has lost its
connection: it is taken from what that left behind.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import sys
import time
from pathlib import Path

LOCK = Path("/run/tinderbox/run.lock")
# A controller says something every 20 s. One that lost its power, or its network, says nothing.
SILENCE_S = 90.0
# The connection of a run that has just ended may take a moment to be gone.
PATIENCE_S = 3.0
_TICK_S = 0.1

Document = dict[str, object]


def read(file: int) -> Document:
    """What the lock says; nothing where it says nothing that is understood."""
    try:
        found = json.loads(os.pread(file, 8192, 0))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def write(file: int, document: Document | None) -> None:
    """Have the lock say that, or nothing."""
    os.ftruncate(file, 0)
    if document is not None:
        os.pwrite(file, (json.dumps(document) + "\n").encode(), 0)


def taken(file: int, mine: Document, patience_s: float = PATIENCE_S) -> bool:
    """Take the lock, from what an earlier run of the same controller left behind, too. Returns whether it is ours."""
    ends = time.monotonic() + patience_s
    asked = False
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pass
        else:
            return True
        other = read(file)
        if not asked and mine.get("lock") is not None and other.get("lock") == mine["lock"]:
            asked = _ended(other)
        if time.monotonic() >= ends:
            return False
        time.sleep(_TICK_S)


def began(process: int) -> str:
    """When a process began, in the kernel's ticks since the boot: with its number, what tells it from all others."""
    try:
        # Its name may have any character, also a bracket.
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def _ended(other: Document) -> bool:
    """End the process that holds the host, where it is still that one: its number may be another's by now."""
    try:
        process = int(str(other["here"]))
        held = os.pidfd_open(process)
    except (KeyError, ValueError, OSError):
        return False
    try:
        # From here on the number can not become another's unseen.
        same = other.get("began") in {None, began(process)} and _holds(process, other.get("lock"))
        if same:
            signal.pidfd_send_signal(held, signal.SIGTERM)
    except OSError:
        return False
    finally:
        os.close(held)
    return same


def _holds(process: int, lock: object) -> bool:
    words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    return json.dumps(lock).encode() in b" ".join(words)


def hold(source: int, silence_s: float = SILENCE_S) -> None:
    """Until `source` ends, or is silent for so long."""
    while select.select([source], [], [], silence_s)[0]:
        if not os.read(source, 4096):
            return


def main(words: list[str]) -> int:
    """Entry point."""
    mine: Document = {**json.loads(words[0]), "here": os.getpid(), "began": began(os.getpid())}
    LOCK.parent.mkdir(mode=0o755, exist_ok=True)
    file = os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    if not taken(file, mine):
        print(json.dumps({"holds": False, "holder": read(file)}), flush=True)
        return 0
    write(file, mine)
    print(json.dumps({"holds": True}), flush=True)
    hold(0)
    write(file, None)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
