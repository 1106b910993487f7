"""What the services of all hosts have logged, shown in the order of time once all were asked."""

from __future__ import annotations

import sys
from collections.abc import Generator
from datetime import datetime

from pyinfra import host, logger
from pyinfra.api import FunctionCommand, Host, State, operation
from pyinfra.api.command import PyinfraCommand

from modules.asking.side_by_side import Silent
from modules.fleet import HostPlan, load_fleet
from modules.fleet.at_hand import secrets_at_hand
from modules.logs.line import Entry, document_of, entry_of, shown, units_of
from modules.logs.reader import Wish
from modules.logs.since import SinceError, since_of
from modules.operations.asked import asked_service, asked_since
from modules.operations.asked_host import ask_host
from modules.reporting.host_errors import errors_here
from modules.reporting.silent import why_silent

_LINES, _ANSWER_S = 50, 60.0
_entries: dict[str, list[Entry]] = {}


def gather(plan: HostPlan) -> None:
    """Ask the host, while the run is prepared. An answer that is none leaves the host out, with why."""
    services = [one.name for one in plan.services if asked_service() in {None, one.name}]
    since = asked_since()
    try:
        begin = None if since is None else since_of(since, datetime.now().astimezone())
    except SinceError as error:
        logger.error("%s: TINDERBOX_SINCE: %s", plan.name, str(error).removeprefix("--since "))
        return
    parts = units_of(services)
    wish = Wish(tuple(parts), follow=False, lines=_LINES, since=begin, attached=False)
    # What a deploy calls `host` stands for another one in each of its hosts.
    answer = ask_host(host.state.inventory.get_host(plan.name), wish.request(), _ANSWER_S)
    if isinstance(answer, Silent) or answer.status:
        why = (
            answer.why if isinstance(answer, Silent) else (answer.err.strip().splitlines() or ["it gave no answer"])[-1]
        )
        logger.error("%s: what it logs is unknown: %s", plan.name, why)
        return
    fleet = load_fleet()
    secrets = secrets_at_hand(fleet)
    told = (document_of(line) for line in answer.out.splitlines())
    found = (entry_of(plan.name, one, parts, secrets) for one in told if one is not None and "at" in one)
    _entries[plan.name] = [entry for entry in found if entry is not None]


@operation()
def logs_shown() -> Generator[PyinfraCommand, None, None]:
    """Show them. To be run once, after `gather` on every host."""
    yield FunctionCommand(_show, (), {})


def _show(state: State, host: Host) -> bool:
    """As pyinfra calls it. Hosts that were lost on the way are named."""
    entries = sorted((entry for found in _entries.values() for entry in found), key=lambda entry: entry.at)
    width = max((len(f"{entry.source} {entry.part}") for entry in entries), default=0)
    for entry in entries:
        sys.stdout.write(shown(entry, width, None) + "\n")
    fleet = load_fleet()
    for name in (one.name for one in state.inventory if state.is_host_in_limit(one) and one.name not in _entries):
        logger.warning("%s: what it logs is unknown: %s", name, why_silent(fleet, name, errors_here().get(name, ())))
    return True
