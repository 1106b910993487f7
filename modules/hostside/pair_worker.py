"""A member of a service that spans hosts which follows: its part runs for a start of the head's, or not at all."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside import pair_place as place
    from modules.hostside.activation import alone
    from modules.hostside.ledger import Ledger
    from modules.hostside.pair_links import Links, Message
    from modules.hostside.pair_rules import UP, Order, Report, Unit, WorkerView, worker_step
    from modules.hostside.pair_story import Story, digest
    from modules.hostside.service_unit import unit_name
else:
    import pair_place as place
    from activation import alone
    from ledger import Ledger
    from pair_links import Links
    from pair_rules import UP, Order, Report, Unit, WorkerView, worker_step
    from pair_story import Story, digest
    from service_unit import unit_name

HEAD = "head"


def order_of(said: Message | None) -> Order | None:
    """What the head has said; None while it has said nothing."""
    found = (said or {}).get("order")
    if not isinstance(found, dict):
        return None
    return Order(**{one.name: found[one.name] for one in fields(Order) if one.name in found})


class Worker:
    """See above. `why`: of the last end here, in words."""

    def __init__(self, service: str) -> None:
        self.service, self.ledger = service, Ledger(service)
        self.story = Story(self.ledger)
        self.links = Links(lambda _peer, _said: self.message, place.say)
        self.message: Message = {}
        self.why = self.did = ""

    def tick(self) -> None:
        """Look, follow, and say what became of it. Raises `OSError`, `BusyError`, `CalledProcessError`."""
        said = self.links.heard().get(HEAD)
        order, unit = order_of(said), place.unit_of(self.service)
        self._report(unit, order)
        if order is None and not self.links.lost(HEAD):
            return
        current = self.ledger.linked("current")
        step = worker_step(
            WorkerView(
                unit=unit,
                order=order,
                current=current,
                spans=bool(self.story.members(current)),
                generation=place.noted_start(self.service),
                holds=tuple(self.story.entries()),
                locked=unit.state != UP and place.locked(self.ledger),
            )
        )
        if step.do and step.do != self.did:
            place.say(f"{step.do}: {step.why}")
        self.did = step.do
        if step.do:
            self._act(step.do, step.why, order)
            self._report(place.unit_of(self.service), order)
        if said is not None and said.get("story") and not place.locked(self.ledger):
            with alone(self.ledger, wait=False):
                self.story.take(said["story"])

    def _act(self, do: str, why: str, order: Order | None) -> None:
        if do == "kill":
            self.why = why
            place.kill(self.service)
        elif do == "stop":
            self.why = why
            place.systemctl("stop", "--no-block", unit_name(self.service))
        elif do in {"enable", "disable"}:
            place.set_enabled(self.service, do == "enable")
        elif do == "fail":
            # Its condition refuses it, so that the unit says here what it says on the head.
            place.systemctl("start", "--no-block", unit_name(self.service))
        elif order is not None and order.release is not None:
            self._begin(do, order, order.release)

    def _begin(self, do: str, order: Order, release: str) -> None:
        """Have the head's release in force; start its part."""
        if do == "follow" or not place.intact(self.ledger, release):
            place.follow(self.ledger, release)
            place.systemctl("reset-failed", unit_name(self.service))
        if do == "start":
            self.why = ""
            place.note_start(self.service, order.generation)
            place.systemctl("start", "--no-block", unit_name(self.service))

    def _report(self, unit: Unit, order: Order | None) -> None:
        generation = place.noted_start(self.service)
        ended = unit.state != UP and unit.active != "deactivating" and not unit.job
        if ended and not self.why and generation and order is not None and order.generation == generation:
            self.why = place.why_ended(self.service)
        report = Report(
            current=self.ledger.linked("current"),
            generation=generation,
            ended=ended,
            state=unit.state,
            why=self.why,
            story=digest(self.story.document()),
            holds=tuple(self.story.entries()),
        )
        self.message = asdict(report)
        told = None if order is None else asdict(order)
        place.publish(self.service, {"head": False, "order": told, "report": self.message})
