"""One engine of a host loads at a time, those of the higher priority first.

Two that load at once each take for free what the other is about to take, and vLLM gives up where memory comes back
while it measures its own. So `memory_gate.py` waits here before it looks at the memory, and a change of release before
it stops the server; a stop for good and the watchdog's restart do not wait. Who loads is noted in
/run/tinderbox/loading.json with the invocation of its unit: the note holds while systemd says that this very start goes
on, so nothing has to be taken back, and what was killed holds nobody up. A start has its bound in its unit
(`TimeoutStartSec=`), and each wait one of its own.

In which order services start, and how long each may take, /etc/tinderbox/services.json says (`order`, `start_s`). On a
host with one service nobody waits.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.atomic import read_json, write_json
    from modules.hostside.service_unit import unit_name, unit_state
else:
    from atomic import read_json, write_json
    from service_unit import unit_name, unit_state

RUN = Path("/run/tinderbox")
SERVICES = Path("/etc/tinderbox/services.json")
# A start, where services.json does not say how long it may take.
_START_S = 1800.0
PAUSE_S = 1.0
_TELL_S = 30.0
# Of a start, as systemd calls its steps; between two attempts nothing loads.
_LOADS = {"condition", "start-pre", "start", "start-post"}
State = Callable[[str], "dict[str, str]"]
Say = Callable[[str], None]


@dataclass(frozen=True)
class Order:
    """The services that belong on a host together, who starts first at the front.

    `start_s`: of each, at most. `spans`: those that span hosts, whose starts their own program bounds.
    """

    names: tuple[str, ...] = ()
    start_s: Mapping[str, float] = field(default_factory=dict)
    spans: frozenset[str] = frozenset()

    @classmethod
    def read(cls, services: Path = SERVICES) -> Order:
        """From services.json; of a host with one service it names none."""
        found = read_json(services) or {}
        names, seconds, spans = (found.get(key) for key in ("order", "start_s", "spans"))
        return cls(
            tuple(str(name) for name in names) if isinstance(names, list) else (),
            {str(name): float(value) for name, value in seconds.items()} if isinstance(seconds, dict) else {},
            frozenset(str(name) for name in spans) if isinstance(spans, list) else frozenset(),
        )

    def seconds(self, *but: str) -> float:
        """How long the starts of all may take one after the other, `but` for these."""
        return sum(self.start_s.get(name, _START_S) for name in self.names if name not in but)


def starts(service: str, state: State = unit_state) -> dict[str, str] | None:
    """The properties of a unit whose start goes on; None of every other."""
    found = state(unit_name(service))
    return found if found.get("ActiveState") == "activating" and found.get("SubState") in _LOADS else None


@dataclass(frozen=True)
class Turn:
    """A service that waits to load among `order`, for `wait_s` seconds at most. The rest differs only in tests."""

    service: str
    order: tuple[str, ...]
    wait_s: float = 0.0
    run: Path = RUN
    state: State = unit_state
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def of(cls, service: str, services: Path = SERVICES) -> Turn:
        """By what the host was told."""
        order = Order.read(services)
        return cls(service, order.names, order.seconds(service))

    def take(self, invocation: str, say: Say) -> str | None:
        """Wait until no other service loads or gives its memory back, and note that this one does.

        Returns None, or for whom it was waited in vain.
        """
        return self._awaited(lambda: self._taken(invocation), say)

    def await_quiet(self, say: Say) -> str | None:
        """Wait until no other service loads: what is stopped meanwhile would give memory back. As `take`."""
        return self._awaited(self.loading, say)

    def _awaited(self, before: Callable[[], str | None], say: Say) -> str | None:
        began = told_at = self.clock()
        told = None
        while (other := before()) is not None:
            now = self.clock()
            if now - began >= self.wait_s:
                return other
            if other != told or now - told_at >= _TELL_S:
                say(f"waiting for {other}: one engine loads at a time")
                told, told_at = other, now
            self.sleep(PAUSE_S)
        return None

    def _taken(self, invocation: str) -> str | None:
        with self._alone():
            other = self.loading() or self._giving_back() or self._goes_before()
            if other is None:
                write_json(self.run / "loading.json", {"service": self.service, "invocation": invocation})
            return other

    def loading(self) -> str | None:
        """In words, the other service that loads."""
        note = read_json(self.run / "loading.json") or {}
        other = str(note.get("service"))
        if other == self.service or other not in self.order:
            return None
        found = starts(other, self.state)
        same = found is not None and found.get("InvocationID") == note.get("invocation")
        return f"service {other}, which loads" if same else None

    def _giving_back(self) -> str | None:
        for other in self.order:
            if other != self.service and self.state(unit_name(other)).get("ActiveState") == "deactivating":
                return f"service {other}, which is being stopped"
        return None

    def _goes_before(self) -> str | None:
        """One of a higher priority that starts at the same time."""
        at = self.order.index(self.service) if self.service in self.order else 0
        other = next((one for one in self.order[:at] if starts(one, self.state) is not None), None)
        return None if other is None else f"service {other}, which starts before this one"

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self.run.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.run / "loading.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)
