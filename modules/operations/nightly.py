"""A timer on the controller."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from pyinfra import host
from pyinfra.api import QuoteString, StringCommand, operation

from modules.facts.files import FileStates
from modules.facts.timer import Timer
from modules.operations.differences import files_differ
from modules.operations.managed_files import ManagedFile, settle, unsettled
from modules.operations.require import unreadable


@operation()
def nightly_settled(unit: str, files: Sequence[ManagedFile]) -> Generator[StringCommand, None, None]:
    """Have a timer and what it starts, enabled and waiting.

    + unit: name of both, without ending
    + files: their texts
    """
    found = host.get_fact(FileStates, paths=[file.path for file in files])
    timer = host.get_fact(Timer, unit=unit)
    if found is None or timer is None:
        yield from unreadable(f"the timer {unit}")
        return
    changes = unsettled(files, found)
    if not changes and timer.enabled and timer.waiting and not timer.stale:
        host.noop(f"{unit}.timer waits")
        return
    files_differ(changes, found)
    yield from settle(changes)
    if changes or timer.stale:
        yield StringCommand("systemctl daemon-reload")
    name = QuoteString(f"{unit}.timer")
    # A changed time counts from the next start of the timer only.
    yield StringCommand("systemctl enable --quiet", name, "&& systemctl restart", name)


@operation()
def nightly_removed(unit: str, files: Sequence[ManagedFile]) -> Generator[StringCommand, None, None]:
    """Have the timer and what it starts no more; a check that runs ends.

    + unit: name of both, without ending
    + files: those that are to be gone
    """
    found = host.get_fact(FileStates, paths=[file.path for file in files])
    if found is None:
        yield from unreadable(f"the timer {unit}")
        return
    gone = [ManagedFile(file.path, None) for file in files]
    changes = unsettled(gone, found)
    if not changes:
        host.noop(f"there is no {unit}.timer")
        return
    timer, service = (QuoteString(f"{unit}.{kind}") for kind in ("timer", "service"))
    yield StringCommand("systemctl disable --quiet --now", timer, "; systemctl stop", service, "; true")
    yield from settle(changes)
    yield StringCommand("systemctl daemon-reload; systemctl reset-failed", service, "2>/dev/null; true")
