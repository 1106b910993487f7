"""A service's unit as one that a release is put in force through: stop, files, start, and the wait for its end."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.drain import Door
    from modules.hostside.ledger import Ledger
    from modules.hostside.load_turn import Turn
    from modules.hostside.predecessor import PredecessorError, make_way
    from modules.hostside.service_unit import (
        READY,
        UNDERWAY,
        journal,
        milestone,
        start_outcome,
        unit_state,
        why_not_ready,
    )
    from modules.hostside.version_changes import Versions
    from modules.hostside.versions import image_id, versions
else:
    from drain import Door
    from load_turn import Turn
    from predecessor import PredecessorError, make_way
    from service_unit import READY, UNDERWAY, journal, milestone, start_outcome, unit_state, why_not_ready
    from versions import image_id, versions

Say = Callable[[str], None]
PAUSE_S = 1.0
# One that hangs in its driver hears no signal. It has answered nobody yet, so nobody waits for the end of a reply.
HURRY_S = 15
# What `docker rm` says where there is no leftover to remove, as is usual.
NOISE = "No such container: tinderbox-"
_RUNS = {"active", "activating", "deactivating", "reloading"}


def systemctl(*words: str) -> bool:
    """Run systemctl; what it says goes to the job's log. Returns whether it accepted."""
    return subprocess.run(["systemctl", *words], check=False).returncode == 0


def machine(reference: str | None) -> Versions:
    """What the machine is now, with the id of a release's image."""
    return versions(image_id(reference) if reference else None)[0]


@dataclass(frozen=True)
class Server:
    """A service's server. Nobody else changes its ledger meanwhile."""

    ledger: Ledger
    unit: str
    say: Say
    sleep: Callable[[float], None] = time.sleep
    machine: Callable[[str | None], Versions] = machine

    def follow(self, restarts_before: int) -> str:
        """Wait until the start has ended. Returns its outcome. One that has failed is not waited for at length."""
        starts = hurried = False
        while True:
            state = unit_state(self.unit)
            outcome = start_outcome(state, restarts_before)
            if outcome != UNDERWAY:
                return outcome
            if starts and not hurried and state.get("ActiveState") == "deactivating":
                hurried = True
                self.hurry()
            starts = starts or state.get("ActiveState") == "activating"
            self.say(milestone(journal(self.unit, state.get("InvocationID"))) or "container starting")
            self.sleep(PAUSE_S)

    def hurry(self) -> None:
        """Have the container gone soon, by force if need be; systemd, which sees its end, waits longer."""
        self.say("ending the server that did not get ready")
        container = self.unit.removesuffix(".service")
        subprocess.run(["docker", "stop", "--time", str(HURRY_S), container], capture_output=True, check=False)

    def bring_up(self, release: str) -> tuple[bool, str]:
        """Stop what runs, put the release in force, start it. Returns whether it got ready, and else why not."""
        # Its memory would come back while another engine measures; and it could not be started before that is through.
        Turn.of(self.ledger.service).await_quiet(self.say)
        Door(self.ledger.service).hold(self.say)
        self.say("stopping the server that ran")
        # A unit that systemd has never seen can not be stopped, and need not.
        systemctl("stop", self.unit)
        if unit_state(self.unit).get("ActiveState") in _RUNS:
            return False, "the server that ran could not be stopped"
        try:
            make_way(self.ledger.service, self.ledger.directory.parents[1])
        except PredecessorError as error:
            return False, f"the server whose place it takes runs on: {error}"
        try:
            self.ledger.put_in_force(release)
        except (OSError, subprocess.CalledProcessError) as error:
            return False, f"its files could not be put in force: {error}"
        systemctl("reset-failed", self.unit)
        accepted = systemctl("start", "--no-block", self.unit)
        return self.awaited(0) if accepted else (False, "systemd refused to start its unit")

    def awaited(self, restarts_before: int | None = None) -> tuple[bool, str]:
        """Wait for a start that is under way; it may be systemd's own after a crash."""
        state = unit_state(self.unit)
        before = int(state.get("NRestarts") or 0) if restarts_before is None else restarts_before
        if self.follow(before) == READY:
            return True, ""
        state = unit_state(self.unit)
        return False, why_not_ready(journal(self.unit, state.get("InvocationID")), state)

    def runs(self, release: str) -> bool:
        """Whether this release serves or is about to. `current` only ever changes while nothing runs."""
        return self.ledger.linked("current") == release and self.outcome() in {READY, UNDERWAY}

    def serves_on(self, release: str) -> Versions:
        """What the machine is on which the release serves."""
        return self.machine(((self.ledger.entry(release) or {}).get("release") or {}).get("image"))

    def outcome(self) -> str:
        """How the unit stands; restarts of before do not count."""
        state = unit_state(self.unit)
        return start_outcome(state, int(state.get("NRestarts") or 0))

    def log(self) -> list[str]:
        """What the last start has logged."""
        lines = journal(self.unit, unit_state(self.unit).get("InvocationID"))
        return [line for line in lines if NOISE not in line]
