"""The state of all hosts, shown once all were asked."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable

from pyinfra import host
from pyinfra.api import FunctionCommand, Host, State, operation
from pyinfra.api.command import PyinfraCommand

from modules.asking.side_by_side import ANSWER_S, Answer, Silent
from modules.fleet import HostPlan, load_fleet, plan_for
from modules.operations.asked_host import ask_host
from modules.reporting.host_errors import errors_here
from modules.reporting.silent import why_silent
from modules.status.answered import last_answers, note_answers
from modules.status.collect import hosts_of
from modules.status.report import StatusReport
from modules.status.times import utc
from modules.status.wish import status_request

_began = time.monotonic()
_answers: dict[str, Answer | Silent] = {}


def gather(plan: HostPlan) -> None:
    """Ask the host, while the run is prepared."""
    # What a deploy calls `host` stands for another one in each of its hosts.
    _answers[plan.name] = ask_host(host.state.inventory.get_host(plan.name), status_request(plan), ANSWER_S)


@operation()
def status_shown() -> Generator[PyinfraCommand, None, None]:
    """Show it. To be run once, after `gather` on every host."""
    yield FunctionCommand(_show, (), {})


def _show(state: State, host: Host) -> bool:
    """As pyinfra calls it. Hosts that were lost on the way are unknown, and not left out."""
    from modules.status.show import show

    show(report_of(one.name for one in state.inventory if state.is_host_in_limit(one)))
    return True


def report_of(names: Iterable[str]) -> StatusReport:
    """Of these hosts, by what they have told here."""
    fleet, errors = load_fleet(), errors_here()
    plans = {name: plan_for(name) for name in names}
    answers = {name: _answers.get(name) or Silent(why_silent(fleet, name, errors.get(name, ()))) for name in plans}
    hosts = hosts_of(fleet, plans, answers, last_answers(fleet.name))
    note_answers(fleet.name, {one.name: str(one.seen) for one in hosts if one.answers})
    return StatusReport(at=utc(time.time()), seconds=round(time.monotonic() - _began, 2), hosts=tuple(hosts))
