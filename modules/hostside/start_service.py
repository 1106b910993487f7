"""Start a service and see it ready; when it does not get ready, put an earlier release back.

Runs as a job, so that neither the wait nor the way back hangs on the controller. The unit's own ExecStartPost decides
what ready means; this follows systemd's account of it and reports the steps that the log shows.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.atomic import write_text
    from modules.hostside.ledger import GOOD, Ledger, restore
    from modules.hostside.progress import Progress
    from modules.hostside.service_unit import (
        FAILED,
        READY,
        UNDERWAY,
        journal,
        milestone,
        start_outcome,
        unit_name,
        unit_state,
    )
else:
    from atomic import write_text
    from ledger import GOOD, Ledger, restore
    from progress import Progress
    from service_unit import FAILED, READY, UNDERWAY, journal, milestone, start_outcome, unit_name, unit_state

Say = Callable[[str], None]
PAUSE_S = 1.0
SHOWN_LINES = 20
# What `docker rm` says where there is no leftover to remove, as is usual.
NOISE = "No such container: tinderbox-"


def systemctl(*words: str) -> bool:
    """Run systemctl; what it says goes to the job's log. Returns whether it accepted."""
    return subprocess.run(["systemctl", *words], check=False).returncode == 0


def step(unit: str, state: dict[str, str]) -> str:
    """What the start is doing, in words."""
    if state.get("ActiveState") in {"active", "deactivating"}:
        return "stopping the server that ran"
    return milestone(journal(unit, state.get("InvocationID"))) or "container starting"


def follow(unit: str, say: Say, restarts_before: int, sleep: Callable[[float], None] = time.sleep) -> str:
    """Wait until the start has ended. Returns its outcome."""
    while True:
        state = unit_state(unit)
        outcome = start_outcome(state, restarts_before)
        if outcome != UNDERWAY:
            return outcome
        say(step(unit, state))
        sleep(PAUSE_S)


def start(unit: str, say: Say) -> str:
    """Start the unit anew and wait."""
    systemctl("reset-failed", unit)
    # A unit that systemd refuses is not started, and the server before it may well go on being active.
    return follow(unit, say, 0) if systemctl("restart", "--no-block", unit) else FAILED


def attach(unit: str, say: Say) -> str:
    """Wait for a start that is under way; it may be systemd's own after a crash."""
    return follow(unit, say, int(unit_state(unit).get("NRestarts") or 0))


def keep_log(ledger: Ledger, release: str, unit: str) -> list[str]:
    """Save what the failed start logged, before another start buries it."""
    lines = [line for line in journal(unit, unit_state(unit).get("InvocationID")) if NOISE not in line]
    write_text(ledger.failure_log(release), "\n".join(lines) + "\n")
    return lines


def go_back(ledger: Ledger, fallback: str | None, unit: str, say: Say) -> str:
    """Put an earlier release in force again and start it. Returns what came of it, in words."""
    if fallback is None or ledger.entry(fallback) is None:
        return "there is no earlier release to go back to: the service is down"
    restore(ledger.service, fallback)
    if start(unit, lambda step: say(f"back to release {fallback}: {step}")) == READY:
        return f"release {fallback} serves again"
    return f"release {fallback} does not start any more either: the service is down"


def main() -> int:
    """0 when the wanted release is ready."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("service")
    parser.add_argument("release")
    parser.add_argument("--attach", action="store_true", help="it is starting already: only wait")
    parser.add_argument("--fallback", help="the release to put back when this one does not get ready")
    parser.add_argument("--ungated", action="store_true", help="no gate follows: ready is good")
    options = parser.parse_args()
    unit, ledger, say = unit_name(options.service), Ledger(options.service), Progress().report
    if (attach(unit, say) if options.attach else start(unit, say)) == READY:
        ledger.mark(options.release, "ready")
        if options.ungated:
            ledger.mark(options.release, GOOD, "ready, and no gate is asked for")
        return 0
    lines = keep_log(ledger, options.release, unit)
    systemctl("stop", unit)
    ledger.mark(options.release, "failed to start")
    back = go_back(ledger, options.fallback, unit, say)
    for line in lines[-SHOWN_LINES:]:
        print(line)
    print(f"release {options.release} did not get ready; {back}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
