"""One release in the place of another: try it, note what comes of it, have the one before it back.

    note what is tried and what comes back · stop what runs · files, then `current` · start · ready

Each step is found done or not done by what the host shows, so whatever was cut is begun anew and comes to the same end.
A release that fails is marked before anything else, and what is marked makes way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside import release_story as story
    from modules.hostside.activation import Pending, forget_pending, read_pending, write_pending
    from modules.hostside.atomic import write_text
    from modules.hostside.drain import Door
    from modules.hostside.gpus_kept import gpus_kept
    from modules.hostside.ledger import Ledger
    from modules.hostside.neighbours import have_back, in_the_way, make_way
    from modules.hostside.predecessor import regained
    from modules.hostside.progress import report_failure
    from modules.hostside.release_needs import lacks
    from modules.hostside.service_server import Server, systemctl
    from modules.hostside.service_unit import READY, until_failed
else:
    import release_story as story
    from activation import Pending, forget_pending, read_pending, write_pending
    from atomic import write_text
    from drain import Door
    from gpus_kept import gpus_kept
    from ledger import Ledger
    from neighbours import have_back, in_the_way, make_way
    from predecessor import regained
    from progress import report_failure
    from release_needs import lacks
    from service_server import Server, systemctl
    from service_unit import READY, until_failed

SHOWN_LINES = 20


@dataclass(frozen=True)
class Switch:
    """What decides which release of a service is in force.

    `why`: a start is made, where not for another release. `rollout`: the rollout and its step that ask for it.
    """

    server: Server
    why: str = ""
    rollout: str = ""

    @property
    def ledger(self) -> Ledger:
        """Of the service."""
        return self.server.ledger

    @property
    def door(self) -> Door:
        """Whether gateways send requests to the service."""
        return Door(self.ledger.service)

    def is_last_good(self, release: str) -> bool:
        """Whether the ledger names it so."""
        return self.ledger.linked("last-good") == release

    def fail(self, release: str, reason: str) -> list[str]:
        """Note that a release did not get ready, and stop it: a crash loop wedges a GB10. Returns what it logged."""
        lines = self.server.log()  # before another start buries it
        write_text(self.ledger.failure_log(release), "\n".join(lines) + "\n")
        systemctl("stop", self.server.unit)
        self.ledger.mark(release, story.FAILED_START, reason)
        return lines

    def begin(self, wanted: Pending) -> None:
        """Note what is tried, and what comes back."""
        # Marked first: without the note of a way back, it is a release that is not in force.
        self.ledger.mark(
            wanted.release,
            story.ACTIVATED,
            self.why or None,
            by=wanted.by,
            instead=wanted.instead,
            rollout=self.rollout,
        )
        write_pending(self.ledger, wanted)
        if wanted.instead is not None and story.standing(self.ledger.entry(wanted.instead)) != story.BAD:
            note = f"rolled back in favour of {wanted.release}"
            self.ledger.mark(wanted.instead, story.WITHDRAWN, note, by=wanted.by)

    def ready(self, pending: Pending) -> None:
        """Note that the release answered; what needs no gate, or has passed one, is good by that."""
        release = pending.release
        if story.standing(self.ledger.entry(release)) not in {story.READY, story.GOOD}:
            self.ledger.mark(release, story.READY)
        if pending.ungated:
            self.ledger.prove(release, "ready, and no gate is asked for", self.server.serves_on(release))
        elif pending.instead is not None and story.was_good(self.ledger.entry(release)):
            self.ledger.mark(release, story.GOOD, "ready again, and was good before")
        elif story.standing(self.ledger.entry(release)) == story.GOOD and not self.is_last_good(release):
            self.ledger.point_good(release)
        if self.is_last_good(release):
            # Any other is not sent requests before its gate has passed it. Before the note goes, so that what is cut in
            # between is done again.
            self.door.open()
            forget_pending(self.ledger)

    def way_back(self, release: str) -> str | None:
        """What comes back when `release` fails: the last good one, else what serves, else what served before that."""
        pending, ledger = read_pending(self.ledger), self.ledger
        serving = ledger.linked("current") if self.server.outcome() == READY else None
        before = pending.back if pending is not None else None
        for candidate in (ledger.linked("last-good"), serving, before):
            if candidate not in {None, release} and ledger.entry(str(candidate)) is not None:
                return candidate
        return None

    def go_back(self, pending: Pending) -> tuple[bool, str]:
        """Have another release in the place of a bad one. Returns whether the service serves, and a word on it."""
        bad = pending.release
        failed = story.failure(self.ledger.entry(bad)) or {}
        by_gate = failed.get("event") == story.FAILED_GATE
        back = self.ledger.linked("last-good") if by_gate else pending.back
        missing = lacks(self.ledger.entry(back)) if back is not None and by_gate else []
        if back in {None, bad} or missing:
            return self._stay(pending, by_gate, f"release {back} lacks {', '.join(missing)}" if missing else "")
        assert back is not None
        server = self._saying(
            f"release {bad} {'failed its gate' if by_gate else 'did not get ready'}; bringing back {back}"
        )
        served, reason = server.awaited() if server.runs(back) else server.bring_up(back)
        if not served:
            self.fail(back, reason)
            # Nothing is forgotten: the next run tries again to have it back.
            return False, f"release {back} does not get ready any more either ({reason}): the service is down"
        self._note_return(back, bad)
        return True, f"release {back} serves again"

    def _saying(self, what: str) -> Server:
        """The server, for steps that are part of something else than what was asked for."""
        self.server.say(what)
        return replace(self.server, say=lambda step: self.server.say(f"{what}: {step}"))

    def _note_return(self, back: str, bad: str) -> None:
        """Each of the two marks once, also when this is run again; then the activation is over."""
        last = story.events(self.ledger.entry(back))[-1]
        # Not told by times: clocks are set, and a release can fail twice within a second.
        failure = f"{story.failures(self.ledger.entry(bad))} of {bad}"
        if last["event"] != story.RESTORED or last.get("failure") != failure:
            self.ledger.mark(back, story.RESTORED, f"in place of {bad}", failure=failure)
        if story.events(self.ledger.entry(bad))[-1]["event"] != story.ROLLED_BACK:
            self.ledger.mark(bad, story.ROLLED_BACK, f"release {back} serves again")
        self.door.open()
        forget_pending(self.ledger)

    def _stay(self, pending: Pending, by_gate: bool, why: str) -> tuple[bool, str]:
        """Nothing comes back. A slow server is better than none; one that never answered is none."""
        again: list[str] = []
        if not by_gate:
            systemctl("stop", self.server.unit)
            # A boot shall not try what never was good.
            if not self.is_last_good(pending.release):
                with gpus_kept():
                    systemctl("disable", "--quiet", self.server.unit)
            again = [*have_back(self.ledger, pending.aside), *regained(self.ledger)]
        self.door.open()
        forget_pending(self.ledger)
        why = why or "there is no earlier release to go back to"
        served = f", and {', '.join(again)}, which had made way for it, serves again" if again else ""
        return False, f"{why}: {'it goes on serving' if by_gate else 'the service is down'}{served}"

    def attempt(self, wanted: Pending, *, attach: bool) -> int:
        """Try a release. `attach`: it is in force, and starting or ready; only wait."""
        attach = attach and self.server.runs(wanted.release)
        if not attach:
            others = in_the_way(self.ledger)
            wanted = replace(wanted, aside=tuple(dict.fromkeys([*wanted.aside, *others])))
            self.begin(wanted)
            make_way(self.ledger, others)
        else:
            write_pending(self.ledger, wanted)
            self.door.close()
        served, reason = self.server.awaited() if attach else self.server.bring_up(wanted.release)
        if served:
            self.ready(wanted)
            return 0
        lines = self.fail(wanted.release, reason)
        _, back = self.go_back(wanted)
        self._tell(f"release {wanted.release} did not get ready: {reason}; {back}", until_failed(lines))
        return 1

    def _tell(self, cause: str, logged: list[str]) -> None:
        """The cause, and what stood in the log before it: what an engine says when it is ended helps nobody."""
        for line in logged[-SHOWN_LINES:]:
            print(line)
        print(cause)
        report_failure(cause, logged[-SHOWN_LINES:])

    def settle(self) -> int:
        """End what is under way. 0 when the service then serves."""
        pending = read_pending(self.ledger)
        if pending is None:
            return 0
        where = story.standing(self.ledger.entry(pending.release))
        if where == story.BAD:
            failed = story.failure(self.ledger.entry(pending.release)) or {}
            served, back = self.go_back(pending)
            cause = f"release {pending.release}: {failed.get('event')}: {failed.get('note')}; {back}"
            print(cause)
            if not served:
                report_failure(cause, [])
            return 0 if served else 1
        return self.attempt(pending, attach=True)
