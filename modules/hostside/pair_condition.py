"""Whether this host's part of a service that spans hosts may start now. `ExecCondition=` of its unit.

    pair_condition.py SERVICE

On the head: all other members are connected, idle, and have the same release in force; it is waited for, since they may
be about to end a former part. On a worker: the head has begun a start of the release that is in force here, too.
Exit status: 0 yes; 1 not now, which is no failure: pair_agent.py starts it when it may; 255 not any more, which is one.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside import pair_place as place
    from modules.hostside.ledger import Ledger
    from modules.hostside.pair_head import report_of
    from modules.hostside.pair_rules import HeadView, Unit, unready
    from modules.hostside.pair_worker import order_of
else:
    import pair_place as place
    from ledger import Ledger
    from pair_head import report_of
    from pair_rules import HeadView, Unit, unready
    from pair_worker import order_of

# An engine may take a minute to stop, and half a minute to give its memory back.
WAIT_S = 150.0
FRESH_S = 10.0
_PAUSE_S = 0.5


def hinders_head(known: dict[str, Any], release: str | None, invocation: str) -> str:
    """What keeps the head's start back; empty when nothing does."""
    if not known.get("head"):
        return "the program that keeps the hosts together has said nothing yet"
    order = known.get("order") or {}
    if order.get("release") != release:
        return "the program that keeps the hosts together has yet to look"
    reports = {name: report_of(said) for name, said in (known.get("reports") or {}).items()}
    view = HeadView(Unit(invocation=invocation), release, tuple(known["workers"]), reports, tuple(known["lost"]))
    return unready(view)


def worker_may(known: dict[str, Any], release: str | None) -> tuple[int, str]:
    """Exit status for a worker, and why."""
    order = order_of(known)
    if order is None:
        return 1, "the head is not heard of"
    if order.gave_up:
        return 255, f"the head has given up: {order.why}"
    if order.release != release or not order.generation:
        return 1, "the head does not start this release"
    return 0, ""


def main(arguments: list[str]) -> int:
    """Entry point."""
    if len(arguments) != 1:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    service, deadline = arguments[0], time.monotonic() + WAIT_S
    is_head = place.is_head(service)
    while True:
        known, release = place.published(service, FRESH_S), Ledger(service).linked("current")
        if is_head:
            why = hinders_head(known, release, os.environ.get("INVOCATION_ID", ""))
            status = 1 if why else 0
        else:
            status, why = worker_may(known, release)
        if status != 1 or not is_head or time.monotonic() >= deadline:
            break
        time.sleep(_PAUSE_S)
    if why:
        print(f"pair: refused: {why}", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
