"""Which hosts of a fleet get a service that names how many it wants, and not where. Pure, and the same each time.

What the lock names stays where it is: a host or a service more moves nothing. Everything else goes, in the order of
priority and then of the fleet file, to the host that has most memory left for it; of two alike to the one that stands
first in the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Wish:
    """A service that is to be placed.

    `replicas`: None: on all of `hosts`, which are those that it may be on, in the file's order. `claims`: host → bytes
    that it takes there. `ports`: host → its port there.
    """

    name: str
    replicas: int | None
    hosts: tuple[str, ...]
    claims: Mapping[str, int]
    ports: Mapping[str, int]
    priority: int = 0


@dataclass
class Place:
    """A host. `room`: bytes for services in all; `taken`: service → bytes; `ports`: port → service."""

    host: str
    room: int
    taken: dict[str, int] = field(default_factory=dict)
    ports: dict[int, str] = field(default_factory=dict)

    @property
    def left(self) -> int:
        """Bytes that no service claims; negative where more is claimed than there is."""
        return self.room - sum(self.taken.values())

    def take(self, wish: Wish) -> None:
        """Have the service here."""
        self.taken[wish.name] = wish.claims[self.host]
        self.ports[wish.ports[self.host]] = wish.name

    def refuses(self, wish: Wish) -> str | None:
        """Why the service can not be here, in words."""
        port, claim = wish.ports[self.host], wish.claims[self.host]
        if port in self.ports:
            return f"port {port} is that of service {self.ports[port]}"
        if claim > self.left:
            return f"it takes {_gib(claim)} and {_gib(max(0, self.left))} are left"
        return None


@dataclass(frozen=True)
class Misfit:
    """A service of which not all replicas have a place. `why`: host → why it has none there."""

    wish: Wish
    placed: tuple[str, ...]
    why: Mapping[str, str]


@dataclass(frozen=True)
class Placement:
    """`hosts`: service → its hosts, in the order in which it came to them. `places`: as they are then."""

    hosts: Mapping[str, tuple[str, ...]]
    places: Mapping[str, Place]
    misfits: tuple[Misfit, ...] = ()


def placed(wishes: Sequence[Wish], places: Iterable[Place], before: Mapping[str, Sequence[str]]) -> Placement:
    """Place them. `places`: with what the fleet file itself gives each host; `before`: what the lock says."""
    by_host = {place.host: place for place in places}
    ranked = sorted(wishes, key=lambda wish: -wish.priority)
    found: dict[str, list[str]] = {wish.name: [] for wish in wishes}

    def put(wish: Wish, host: str) -> None:
        by_host[host].take(wish)
        found[wish.name].append(host)

    for wish in ranked:
        known = wish.hosts if wish.replicas is None else before.get(wish.name, ())[: wish.replicas]
        for host in known:
            if host in wish.hosts:
                put(wish, host)
    misfits = []
    for wish in ranked:
        while len(found[wish.name]) < (wish.replicas or 0):
            free = [host for host in wish.hosts if host not in found[wish.name]]
            fitting = [host for host in free if by_host[host].refuses(wish) is None]
            if not fitting:
                why = {host: str(by_host[host].refuses(wish)) for host in free}
                misfits.append(Misfit(wish, tuple(found[wish.name]), why))
                break
            # The first of several alike, since max() keeps the order.
            put(wish, max(fitting, key=lambda host: by_host[host].left - wish.claims[host]))
    return Placement({name: tuple(hosts) for name, hosts in found.items()}, by_host, tuple(misfits))


def _gib(size: int) -> str:
    return f"{size / 1024**3:.2f} GiB"
