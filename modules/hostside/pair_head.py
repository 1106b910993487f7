"""The member of a service that spans hosts which decides: what runs here is what the others follow."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside import pair_place as place
    from modules.hostside.activation import alone
    from modules.hostside.atomic import read_json
    from modules.hostside.ledger import Ledger
    from modules.hostside.pair_links import Links, Message
    from modules.hostside.pair_rules import FAILED, UP, HeadView, Order, Report, head_step
    from modules.hostside.pair_story import Story, digest
    from modules.hostside.release_story import RESTARTED
    from modules.hostside.service_unit import unit_name
else:
    import pair_place as place
    from activation import alone
    from atomic import read_json
    from ledger import Ledger
    from pair_links import Links
    from pair_rules import FAILED, UP, HeadView, Order, Report, head_step
    from pair_story import Story, digest
    from release_story import RESTARTED
    from service_unit import unit_name

# Who has served for so long does not crash in a loop.
PROVEN_S = 1800.0


def report_of(said: Message) -> Report:
    """What a worker has said; of keys that it does not know it has said nothing."""
    known = {one.name: said[one.name] for one in fields(Report) if one.name in said}
    return Report(**known | {"holds": tuple(known.get("holds") or ())})


def reports_of(heard: Mapping[str, Message]) -> dict[str, Report]:
    """By member. One whose program has just begun says nothing at first; that is no word on what runs there."""
    return {name: report_of(said) for name, said in heard.items() if said}


class Head:
    """See above. `why`: of the last end, in words. `restarts`: since somebody else has started it."""

    def __init__(self, service: str) -> None:
        self.service, self.ledger = service, Ledger(service)
        self.story = Story(self.ledger)
        self.links = Links(lambda peer, _said: self.messages.get(peer, self.order), place.say)
        self.order: Message = {}
        self.messages: dict[str, Message] = {}
        before = read_json(place.state_file(service)) or {}
        self.invocation, self.why = str(before.get("invocation") or ""), str(before.get("why") or "")
        self.restarts = int(str(before.get("restarts") or 0))
        self.gave_up = self.starting = False
        self.ended_at: float | None = None
        self.ready_at: float | None = None

    def tick(self) -> None:
        """Look, decide, act, and have it said. Raises `OSError`, `BusyError`."""
        unit, release = place.unit_of(self.service), self.ledger.linked("current")
        workers = self.story.members(release)[1:]
        view = HeadView(
            unit=unit,
            release=release,
            workers=workers,
            reports=reports_of(self.links.heard()),
            lost=tuple(name for name in workers if self.links.lost(name)),
            locked=unit.state != UP and place.locked(self.ledger),
        )
        self._noted(view)
        ended_s = 0.0 if self.ended_at is None else time.monotonic() - self.ended_at
        step = head_step(replace(view, ended_s=ended_s, restarts=self.restarts))
        self._publish(view)
        if step.do:
            self._act(step.do, step.why, view)

    def _noted(self, view: HeadView) -> None:
        """Somebody else's start begins the counting anew; an end is timed, and its reason kept."""
        unit = view.unit
        if unit.state == UP:
            if unit.invocation != self.invocation:
                self.restarts = self.restarts if self.starting else 0
                self.invocation, self.why, self.starting, self.gave_up = unit.invocation, "", False, False
            self.ended_at = None
            self.ready_at = (self.ready_at or time.monotonic()) if unit.active == "active" else None
        elif unit.active == "failed" and self.ended_at is None:
            self.ended_at = time.monotonic()
            if self.ready_at is not None and self.ended_at - self.ready_at >= PROVEN_S:
                self.restarts = 0
            self.why = self.why or place.why_ended(self.service)

    def _act(self, do: str, why: str, view: HeadView) -> None:
        if do == "kill":
            if self.why != why:
                place.say(f"ending the engine here: {why}")
            self.why = why
            self._publish(view)  # for await_ready.py, which tells why its engine has gone
            place.kill(self.service)
        elif do == "give up" and not self.gave_up:
            self.gave_up = True
            place.say(f"not started again: {why}; the last time: {self.why}")
            self._publish(view)
        elif do == "start":
            with alone(self.ledger, wait=False):
                self._start(why, view)

    def _start(self, why: str, view: HeadView) -> None:
        if view.unit.active == "failed":
            self.restarts += 1
            place.say(f"starting again ({self.restarts}): {why}; it had ended: {self.why}")
            self.ledger.mark(str(view.release), RESTARTED, self.why)
        else:
            place.say(f"starting: {why}")
        self.starting = True
        place.systemctl("start", "--no-block", unit_name(self.service))

    def _publish(self, view: HeadView) -> None:
        unit = view.unit
        order = Order(
            release=view.release,
            spans=bool(view.workers),
            wanted=unit.enabled,
            # What this ends is a failure before systemd says so.
            state=FAILED if self.why and unit.state != UP and unit.active == "deactivating" else unit.state,
            generation=unit.invocation if unit.state == UP else "",
            ready=unit.active == "active",
            gave_up=self.gave_up,
            why=self.why,
        )
        self.order = {"order": asdict(order)}
        self.messages = {name: self._message(report) for name, report in view.reports.items()}
        place.publish(
            self.service,
            {
                **self.order,
                "head": True,
                "workers": list(view.workers),
                "reports": {name: asdict(report) for name, report in view.reports.items()},
                "lost": list(view.lost),
                "invocation": self.invocation,
                "restarts": self.restarts,
                "why": self.why,
            },
        )

    def _message(self, report: Report) -> Message:
        """The order; with the story for a worker that tells it otherwise."""
        story = self.story.document(only=report.holds)
        return self.order if digest(story) == report.story else {**self.order, "story": story}
