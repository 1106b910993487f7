"""An activation that is under way: which release is tried on this host, and which one comes back if it fails.

It lies in `ledger/<service>/pending` from before the old server is stopped until the release is good, or another one
serves in its place. How far it has come is not written there: that follows from the ledger's events, from what
`current` names and from the unit, so that a program that was killed at any point is simply run again.
"""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.atomic import read_json, write_json
    from modules.hostside.ledger import Ledger
else:
    from atomic import read_json, write_json


@dataclass(frozen=True)
class Pending:
    """`back`: what comes back when `release` does not get ready. `instead`: the release that an operator rolls back.

    `ungated`: no gate follows, so ready is good. `by`: who asked for it. `aside`: services that the fleet file has no
    more, and that were stopped for this one.
    """

    release: str
    back: str | None = None
    ungated: bool = False
    by: str = ""
    instead: str | None = None
    aside: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """As it is written."""
        return asdict(self)


def read_pending(ledger: Ledger) -> Pending | None:
    """The activation that is under way, if there is one."""
    found: dict[str, Any] | None = read_json(ledger.directory / "pending")
    return Pending(**found | {"aside": tuple(found.get("aside") or ())}) if found is not None else None


def write_pending(ledger: Ledger, pending: Pending) -> None:
    """From now on this one is."""
    write_json(ledger.directory / "pending", pending.document())


def forget_pending(ledger: Ledger, release: str | None = None) -> None:
    """The activation (of `release`, where one is named) is over."""
    pending = read_pending(ledger)
    if pending is not None and release in {None, pending.release}:
        (ledger.directory / "pending").unlink(missing_ok=True)


class BusyError(Exception):
    """Another program is at work on the service."""


@contextmanager
def alone(ledger: Ledger, *, wait: bool = True, waits: Callable[[], None] = lambda: None) -> Iterator[None]:
    """While this lasts no other program changes which release of the service is in force. Ends with the process."""
    ledger.directory.mkdir(parents=True, exist_ok=True)
    with (ledger.directory / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not wait:
                raise BusyError(
                    f"service {ledger.service} is being started by another run: wait for it, or look at "
                    f"systemctl list-units 'tinderbox-job-start-{ledger.service}-*' and stop what you find there"
                ) from None
            waits()
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
