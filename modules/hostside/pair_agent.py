"""Keep a service together over its hosts: one part on each, started, ended and rolled back together.

    pair_agent.py SERVICE

Runs on every member, also when the controller does not. The head says which release is in force, which start of it
runs, and what became of each release; the workers follow, and tell what became of their part (pair_rules.py). What it
does is in the journal of its unit, `tinderbox-pair@SERVICE.service`.
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from subprocess import CalledProcessError
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside import pair_place as place
    from modules.hostside.activation import BusyError
    from modules.hostside.atomic import read_json
    from modules.hostside.pair_head import Head
    from modules.hostside.pair_worker import Worker
else:
    import pair_place as place
    from activation import BusyError
    from atomic import read_json
    from pair_head import Head
    from pair_worker import Worker

TICK_S = 1.0


def seen(paths: tuple[Path, ...]) -> list[int]:
    """When each was last written; nothing of one that is not there."""
    return [path.stat().st_mtime_ns for path in paths if path.exists()]


def linked(member: Head | Worker, settings: dict[str, Any], key: bytes) -> threading.Thread:
    """The thread that keeps the connections."""
    service, host = member.service, str(settings["host"])
    where = (str(settings["address"]), int(settings["port"]), key, service)
    if isinstance(member, Head):
        return threading.Thread(target=member.links.serve, args=where, daemon=True)
    return threading.Thread(target=member.links.join, args=(*where, host), daemon=True)


def main(arguments: list[str]) -> int:
    """Entry point. Ends when its settings change, to be started anew with them."""
    if len(arguments) != 1:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    service = arguments[0]
    files = (place.settings_file(service), place.key_file(service))
    while not all(path.exists() for path in files):
        time.sleep(TICK_S)
    began = seen(files)
    settings: dict[str, Any] = read_json(files[0]) or {}
    key = files[1].read_text(encoding="ascii").strip().encode()
    is_head = settings.get("host") == settings.get("head")
    member = Head(service) if is_head else Worker(service)
    linked(member, settings, key).start()
    while seen(files) == began:
        try:
            member.tick()
        except (OSError, BusyError, CalledProcessError) as error:
            place.say(f"tried again: {error}")
        member.links.tick()
        time.sleep(TICK_S)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
