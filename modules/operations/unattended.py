"""What goes on on hosts when an operator leaves a run: asked of the hosts themselves, and told by name.

Jobs outlive the run that has begun them. Whether one does at this moment is known to its host alone: it may have ended
since the last look, or begin just now.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gevent
from pyinfra import host as current_host
from pyinfra import logger
from pyinfra.api import Host, QuoteString, StringCommand
from pyinfra.connectors.util import CommandOutput
from pyinfra.context import ctx_state
from pyinfra.context import state as current_state

from modules.facts.hostside import HOME
from modules.operations.interrupt import end_run
from modules.reporting.left_behind import LEFT_FILE, Left, note_left

# Hosts that have not answered by then are told as unknown: an operator who leaves is not kept waiting.
PATIENCE_S = 3  # whole seconds, for pyinfra
_STEP_S = 0.1
_JOBS = "/var/lib/tinderbox/jobs"
_OFFER = "tinderbox-offer.service"
_UNIT = re.compile(r"^tinderbox-job-(?P<job>.+)\.service$")
_LISTED = re.compile(r"^(?P<unit>\S+\.service)\s+\S+\s+\S+\s+\S+\s+(?:Tinderbox: )?(?P<title>.*)$")
_PROGRAM = re.compile(rf"^program\s+(?P<unit>\S+)\s.*{HOME}/(?P<name>\w+\.py)\b")
_LOOKS = "job.py"  # starts or looks at what is listed as a unit
_SSHD = {"ssh.service", "sshd.service"}
# In short: those that are named are stopped first, or waited for until they are there; then what runs is listed.
_LOOK = (
    'for unit in $1; do systemctl stop --no-block "$unit"; done; '
    'for look in 1 2 3 4 5 6 7 8; do systemctl is-active --quiet $2 tinderbox-none && break; test -n "$2" || break; '
    "sleep 0.1; done; "
    f"systemctl list-units --no-legend --plain --state=active,activating 'tinderbox-job-*' {_OFFER}; "
    "ps -eo unit=,args= | sed 's/^/program /'"
)


@dataclass(frozen=True)
class GoesOn:
    """Something that goes on on a host. `unit`: of systemd; None: a command that was begun and ends by itself."""

    title: str
    unit: str | None

    def lines(self, name: str) -> list[str]:
        """What an operator is told. `name`: the host's."""
        if self.unit is None:
            return [f"{self.title}: still at work on {name}, and ends by itself"]
        job = _UNIT.match(self.unit)
        if job is None:
            return [f"{self.title}: {self.unit} on {name} ends by itself when nobody has asked for 15 minutes"]
        return [
            f"{self.title}: left running on {name} as {self.unit}; the next run picks it up",
            f"    look: tail -f {_JOBS}/{job['job']}/log    stop: systemctl stop {self.unit}",
        ]


class _Begun:
    """Host → the jobs that this process has begun there: the last, one about to start, and one that ends with it."""

    hosts: dict[str, Host] = {}  # noqa: RUF012
    last: dict[str, str] = {}  # noqa: RUF012
    starting: dict[str, str] = {}  # noqa: RUF012
    ending: dict[str, str] = {}  # noqa: RUF012
    leaving = False


def begins(unit: str) -> None:
    """Note that the host of the operation under way is asked to start a job now."""
    if ctx_state.isset() and current_state.is_executing:
        name = current_host.name
        _Begun.hosts[name] = current_state.inventory.get_host(name)
        _Begun.starting[name] = _Begun.last[name] = unit


def seen(name: str) -> None:
    """Note that the job which was about to start on a host has been seen there."""
    _Begun.starting.pop(name, None)


def ends_with_run(name: str, unit: str) -> None:
    """Note that a job of a host is of no use without this run."""
    _Begun.ending[name] = unit


def has_begun() -> bool:
    """Whether there is a host to be asked."""
    return bool(_Begun.hosts)


def is_leaving() -> bool:
    """Whether an operator has asked to leave and the hosts are being asked what goes on."""
    return _Begun.leaving


def parse_left(lines: list[str], ended: str | None = None) -> list[GoesOn]:
    """What goes on, by a host's answer. `ended`: a unit that was told to stop."""
    found = []
    for line in lines:
        program, listed = _PROGRAM.match(line), _LISTED.match(line)
        # What runs in a unit of its own is listed as that; in a login's there is what this run has sent.
        if program is not None:
            if program["name"] != _LOOKS and (program["unit"].startswith("session-") or program["unit"] in _SSHD):
                found.append(GoesOn(program["name"], None))
        elif listed is not None and listed["unit"] != ended:
            found.append(GoesOn(listed["title"], listed["unit"]))
    return list(dict.fromkeys(found))


def leave(farewells: Mapping[str, list[str]]) -> None:
    """End the run; before that, tell what goes on. From a signal's handler, which must not wait: asking comes after it.

    `farewells`: host → what is told of it where it does not answer.
    """
    if _Begun.leaving or not _Begun.hosts:
        end_run()
        return
    _Begun.leaving = True
    _note({name: [_Begun.last[name]] for name in _Begun.hosts}, settled=False)
    gevent.get_hub().loop.run_callback_threadsafe(gevent.spawn, _tell_and_end, dict(farewells))


def _tell_and_end(farewells: dict[str, list[str]]) -> None:
    try:
        _tell(farewells)
    finally:
        _Begun.leaving = False
        end_run()


def _tell(farewells: dict[str, list[str]]) -> None:
    asked = {name: gevent.spawn(_ask, host) for name, host in _Begun.hosts.items()}
    for host in current_state.inventory if ctx_state.isset() else ():
        _silence(host)
    gevent.joinall(list(asked.values()), timeout=PATIENCE_S - _STEP_S)
    told: dict[str, list[str]] = {}
    for name, greenlet in asked.items():
        left: list[GoesOn] | None = greenlet.value if greenlet.successful() else None
        if left is None:
            told[name] = [f"{_Begun.last[name]} (perhaps: it did not say in time)"]
            lines = farewells.get(name) or [f"did not say in time whether {_Begun.last[name]} goes on"]
        else:
            told[name] = [one.unit or one.title for one in left]
            lines = [line for one in left for line in one.lines(name)]
        for line in lines:
            _Begun.hosts[name].log(line, log_func=logger.warning)
    _note(told, settled=True)


def _ask(host: Host) -> list[GoesOn] | None:
    name = host.name
    words = [QuoteString(which.get(name, "")) for which in (_Begun.ending, _Begun.starting)]
    command = StringCommand("sh -c", QuoteString(_LOOK), "look", *words)
    ran, output = host.connector.run_shell_command(command, False, False, _sudo=True, _timeout=PATIENCE_S)
    return parse_left(output.stdout_lines, _Begun.ending.get(name)) if ran else None


def _silence(host: Host) -> None:
    """Nothing new is begun on a host any more. What is tried while hosts are asked waits, so as not to be told."""

    def wait(*_: Any, **__: Any) -> tuple[bool, CommandOutput]:
        while _Begun.leaving:
            time.sleep(_STEP_S)
        return False, CommandOutput([])

    for each in ("run_shell_command", "put_file", "get_file"):
        setattr(host, each, wait)


def _note(left: Mapping[str, list[str]], *, settled: bool) -> None:
    path = os.environ.get(LEFT_FILE)
    if path is not None:
        note_left(Path(path), Left(settled, {name: units for name, units in left.items() if units}))
