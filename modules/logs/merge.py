"""Streams of several hosts, each in the order of time → one in the order of time. Pure."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Generic, TypeVar

T = TypeVar("T")
# In which entries of other hosts that are older may yet come.
HOLD_S = 0.3


@dataclass
class _Source(Generic[T]):
    """`past`: it still tells what was there before it was asked, in order, and so has to be waited for."""

    past: bool = True
    held: deque[tuple[int, T]] = field(default_factory=deque)


class Merger(Generic[T]):
    """`add` what comes; `ready` gives what nothing older can come before any more.

    While hosts tell of the past the order is exact. What they tell as it happens is held for a moment; a host that is
    late by more, as after a lost connection, is told where it comes.
    """

    def __init__(self, sources: Iterable[str], hold_s: float = HOLD_S) -> None:
        self._sources: dict[str, _Source[T]] = {name: _Source() for name in sources}
        self._live: list[tuple[int, int, float, T]] = []
        self._hold_s, self._numbers = hold_s, count()

    def add(self, source: str, at: int, entry: T, now: float) -> None:
        """`at`: when it was logged. `now`: when it came, by a clock that nobody sets."""
        one = self._sources[source]
        if one.past:
            one.held.append((at, entry))
        else:
            heapq.heappush(self._live, (at, next(self._numbers), now, entry))

    def live(self, source: str, now: float) -> None:
        """Its past is told, or is not waited for any longer: what it tells from now on, it tells as it happens."""
        one = self._sources[source]
        if one.past:
            one.past = False
            for at, entry in one.held:
                # What was held back for others has waited long enough.
                heapq.heappush(self._live, (at, next(self._numbers), now - self._hold_s, entry))
            one.held.clear()

    def ready(self, now: float) -> list[T]:
        """What can be shown, in order."""
        telling = [one for one in self._sources.values() if one.past]
        if any(not one.held for one in telling):
            return []
        out: list[T] = []
        while True:
            first = min((one for one in telling), key=lambda one: one.held[0][0], default=None)
            live = self._live[0] if self._live else None
            if live is not None and (first is None or live[0] <= first.held[0][0]):
                if not telling and live[2] > now - self._hold_s:
                    return out
                out.append(heapq.heappop(self._live)[3])
            elif first is not None:
                out.append(first.held.popleft()[1])
                if not first.held:
                    return out
            else:
                return out

    def rest(self) -> list[T]:
        """All that is left, in order: nothing more will come."""
        for name in self._sources:
            self.live(name, 0.0)
        return [heapq.heappop(self._live)[3] for _ in range(len(self._live))]

    def next_s(self, now: float) -> float | None:
        """How long until something held is ready; None: nothing is."""
        if not self._live or any(one.past for one in self._sources.values()):
            return None
        return max(0.0, self._live[0][2] + self._hold_s - now)
