"""All hosts' journals, read side by side and shown in the order of time."""

from __future__ import annotations

import queue
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from modules.asking.connections import Connections
from modules.logs.line import Entry, entry_of, units_of
from modules.logs.merge import Merger
from modules.logs.reader import Reader, Told, Wish

# A host that talks, and does not come to the end of its past, is not waited for any longer by the others.
_PAST_S = 20.0
_TICK_S = 0.5
_TOGETHER = 2000


@dataclass(frozen=True)
class Host:
    """A host that is read. `source`: how it is called; `services`: whose journals; `secrets`: its fleet's, by value."""

    connections: Connections
    name: str
    source: str
    services: tuple[str, ...]
    secrets: tuple[str, ...] = ()


@dataclass
class Logs:
    """`show`: an entry; `tell`: what else people must know. `grep`: only entries with it."""

    hosts: Sequence[Host]
    wish: Wish
    show: Callable[[Entry], None]
    tell: Callable[[str], None]
    grep: re.Pattern[str] | None = None
    unread: set[str] = field(default_factory=set)
    _spoke: set[str] = field(default_factory=set)

    def run(self) -> None:
        """To the end of all journals; where they are followed, until it is interrupted."""
        self._told: queue.SimpleQueue[Told] = queue.SimpleQueue()
        self._by_source = {host.source: host for host in self.hosts}
        self._merger: Merger[Entry] = Merger(self._by_source)
        self._open = set(self._by_source)
        parts = {host.source: units_of(host.services) for host in self.hosts}
        readers = [
            Reader(host.connections, host.name, host.source, self._wish_of(host), self._told) for host in self.hosts
        ]
        for reader in readers:
            reader.start()
        try:
            self._loop(parts)
        finally:
            for reader in readers:
                reader.stop()

    def _wish_of(self, host: Host) -> Wish:
        return Wish(tuple(units_of(host.services)), self.wish.follow, self.wish.lines, self.wish.since)

    def _loop(self, parts: dict[str, dict[str, str]]) -> None:
        past_ends = time.monotonic() + _PAST_S
        while self._open:
            now = time.monotonic()
            wait = self._merger.next_s(now)
            try:
                told = self._told.get(timeout=_TICK_S if wait is None else min(wait, _TICK_S))
                now = time.monotonic()
                self._take(told, parts[told.source], now)
                # What has come together is put in order together; a long past is shown as it comes.
                for _ in range(_TOGETHER):
                    if self._told.empty():
                        break
                    told = self._told.get()
                    self._take(told, parts[told.source], now)
            except queue.Empty:
                now = time.monotonic()
            if self.wish.follow and now > past_ends:
                for source in self._by_source:
                    self._merger.live(source, now)
            self._show(self._merger.ready(now))
        self._show(self._merger.rest())

    def _take(self, told: Told, parts: dict[str, str], now: float) -> None:
        source, host = told.source, self._by_source[told.source]
        if told.kind == "entry" and told.document is not None:
            self._spoke.add(source)
            entry = entry_of(source, told.document, parts, host.secrets)
            if entry is not None and (self.grep is None or self.grep.search(entry.text)):
                self._merger.add(source, entry.at, entry, now)
        elif told.kind == "live":
            self._merger.live(source, now)
        elif told.kind == "root" and told.document is not None and not told.document["root"]:
            self.tell(f"{source}: sudo asks for a password, so only what its user may read of the journal is shown")
        elif told.kind == "lost":
            # The others are not kept waiting.
            self._merger.live(source, now)
            self.unread.add(source)
            again = "; trying again" if self.wish.follow else ""
            self.tell(f"{source}: what it logs is unknown: {told.why}{again}")
        elif told.kind == "back":
            self.unread.discard(source)
            self.tell(f"{source}: it is read again, from where it was left")
        elif told.kind == "end":
            self._merger.live(source, now)
            self._open.discard(source)
            if source not in self.unread | self._spoke:
                self.tell(f"{source}: its journal has nothing of {', '.join(host.services)} in that time")

    def _show(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self.show(entry)
