"""What hosts answered, and what they did not → the report of this moment."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from modules.asking.side_by_side import Answer, Silent
from modules.fleet import Fleet, HostPlan
from modules.operations.hostside import programs
from modules.status.answered import last_answers, note_answers
from modules.status.ask import Fleets, programs_sum
from modules.status.report import HostStatus, StatusReport
from modules.status.seen import UnreadableError, document_in, host_status, unknown_status
from modules.status.times import utc

Answers = Mapping[str, Answer | Silent]


def report_of(asked: Fleets, answers: Sequence[Answers], began: float) -> StatusReport:
    """`began`: when the first was asked, by `time.monotonic`. Notes which hosts have answered."""
    hosts: list[HostStatus] = []
    for at, fleet in enumerate(asked.fleets):
        plans = asked.plans(at)
        hosts += hosts_of(fleet, plans, answers[at], last_answers(fleet.name))
        note_answers(fleet.name, {one.name: str(one.seen) for one in hosts if one.fleet == fleet.name and one.answers})
    return StatusReport(at=utc(time.time()), seconds=round(time.monotonic() - began, 2), hosts=tuple(hosts))


def hosts_of(
    fleet: Fleet, plans: Mapping[str, HostPlan], answers: Answers, before: Mapping[str, str]
) -> list[HostStatus]:
    """Of one fleet. `before`: host → when it last answered."""
    return [_host(fleet, name, plan, answers[name], before.get(name)) for name, plan in plans.items()]


def _host(fleet: Fleet, name: str, plan: HostPlan, answer: Answer | Silent, before: str | None) -> HostStatus:
    host = fleet.hosts[name]
    if isinstance(answer, Silent):
        return unknown_status(fleet.name, host, plan, answer.why, before)
    try:
        return host_status(fleet.name, host, plan, document_in(answer), programs_sum(programs()))
    except UnreadableError as error:
        return unknown_status(fleet.name, host, plan, str(error), before)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        why = f"its answer was not understood ({type(error).__name__}: {error})"
        return unknown_status(fleet.name, host, plan, why, before)
