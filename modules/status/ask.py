"""The hosts of fleets, asked how they are: all at once, over one connection each, in one round trip."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from modules.asking.connections import Connections
from modules.asking.program import command
from modules.asking.side_by_side import ANSWER_S, Answer, Asking, Silent
from modules.catalog import load_catalog
from modules.fleet import Fleet, HostPlan
from modules.fleet.plan import host_plan
from modules.status.wish import status_request


@dataclass(frozen=True)
class Fleets:
    """Fleets whose hosts are asked again and again; connections stay. `hosts`: by fleet, those within the limit."""

    fleets: tuple[Fleet, ...]
    hosts: tuple[tuple[str, ...], ...]
    connections: tuple[Connections, ...]

    @classmethod
    def of(cls, fleets: Sequence[Fleet], hosts: Sequence[Sequence[str]], patience_s: float) -> Fleets:
        """No connection is made yet."""
        pairs = list(zip(fleets, hosts, strict=True))
        made = (Connections(fleet, (fleet.hosts[name] for name in names), patience_s) for fleet, names in pairs)
        return cls(tuple(fleets), tuple(tuple(names) for names in hosts), tuple(made))

    def plans(self, at: int) -> dict[str, HostPlan]:
        """Of the hosts of one fleet that are asked."""
        return {name: host_plan(self.fleets[at].hosts[name], load_catalog()) for name in self.hosts[at]}

    def begin(self) -> list[Asking]:
        """Ask them all. Who wants the answers has the rest of the time to load what shows them."""
        begun = []
        for at, connections in enumerate(self.connections):
            plans = self.plans(at)
            requests = {name: status_request(plan) for name, plan in plans.items()}
            begun.append(Asking(connections, command(), requests))
        return begun

    def close(self) -> None:
        """End all connections."""
        for one in self.connections:
            one.close_all()


def answers_of(begun: Iterable[Asking], answer_s: float = ANSWER_S) -> list[Mapping[str, Answer | Silent]]:
    """By fleet."""
    ends = time.monotonic() + answer_s
    return [one.answers(max(0.0, ends - time.monotonic())) for one in begun]


def programs_sum(programs: Mapping[str, bytes]) -> int:
    """As `status_state.py` reckons it over what a host has installed."""
    total = 0
    for name, content in sorted(programs.items()):
        total = zlib.crc32(content, zlib.crc32(name.encode(), total))
    return total
