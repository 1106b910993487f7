"""The mark that says that a service on this host takes no requests, and until when it counts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.atomic import read_json, write_json
else:
    from atomic import read_json, write_json

MARKS = Path("/run/tinderbox/drain")
LEASES = MARKS.with_name("drain-measured")
# How long the mark of a measurement counts after a word of whoever measures: longer than a controller is away over a
# broken connection, or takes to judge.
LEASE_S = 180.0


@dataclass(frozen=True)
class Mark:
    """A service's mark. `clock`: one that no one sets, and that a boot begins anew, as it does with the mark.

    `since`: when it was put. Until when it counts lies beside it, since that is written by others than who puts it: so
    no word of a measurement makes a mark of its own out of one that a stop of the server has put meanwhile.
    """

    service: str
    marks: Path = MARKS
    clock: Callable[[], float] = time.monotonic

    @property
    def _file(self) -> Path:
        return self.marks / self.service

    @property
    def _lease(self) -> Path:
        return self.marks.with_name(LEASES.name) / self.service

    @property
    def _document(self) -> dict[str, Any]:
        return read_json(self._file) or {}

    @property
    def since(self) -> object:
        """When it was put, by `clock`."""
        return self._document.get("since")

    @property
    def counts(self) -> bool:
        """Whether the service takes no requests."""
        if not self._file.exists():
            return False
        return not self._document.get("measure") or self.clock() < self._until

    @property
    def _until(self) -> float:
        until = (read_json(self._lease) or {}).get("until")
        return float(until) if isinstance(until, int | float) else 0.0

    def put(self, *, measure: bool) -> None:
        """Have it count; one without an end keeps none."""
        self.marks.mkdir(parents=True, exist_ok=True)
        counted, former = self.counts, self._document
        if counted and not former.get("measure"):
            return
        if measure:
            self._extend()
        if not counted or not measure:
            since = former.get("since") if counted else self.clock()
            write_json(self._file, {"since": since, **({"measure": True} if measure else {})})

    def stay(self) -> None:
        """One that was put for a measurement counts on from now; no other is changed, and none is made."""
        if self._document.get("measure"):
            self._extend()

    def _extend(self) -> None:
        self._lease.parent.mkdir(parents=True, exist_ok=True)
        write_json(self._lease, {"until": self.clock() + LEASE_S})

    def take_away(self) -> None:
        """There is none any more."""
        self._file.unlink(missing_ok=True)
        self._lease.unlink(missing_ok=True)
