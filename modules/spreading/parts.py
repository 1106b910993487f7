"""The part of each host in having a model everywhere. Pure: what is known of the hosts comes in, a part comes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from ipaddress import IPv4Address, IPv4Network

from modules.spec.settings import Spread


@dataclass(frozen=True)
class Member:
    """A host that wants the model. `whole`: it has all of it, verified; `held`: bytes that it has.

    `addresses`: its own; `address`: the one that it shows to others where no network is set.
    """

    name: str
    whole: bool
    held: int = 0
    addresses: tuple[str, ...] = ()
    address: str | None = None
    spread: Spread = field(default_factory=Spread)


class Part(Enum):
    """What a host has to do."""

    NOTHING = "nothing"
    FETCH = "fetch"
    GIVE = "give"
    TAKE = "take"


def part_of(name: str, members: Sequence[Member]) -> Part:
    """The part of the host `name`, which is one of the members.

    Who does not spread fetches alone. Of the others, those that have the model give it; where none has, one fetches.
    """
    mine = next(member for member in members if member.name == name)
    if not mine.spread.enabled:
        return Part.NOTHING if mine.whole else Part.FETCH
    spreading = [member for member in members if member.spread.enabled]
    if all(member.whole for member in spreading):
        return Part.NOTHING
    if mine.whole:
        return Part.GIVE
    if any(member.whole for member in spreading):
        return Part.TAKE
    return Part.FETCH if fetcher(spreading) == name else Part.TAKE


def fetcher(members: Sequence[Member]) -> str:
    """Who fetches from outside: a seed of the fleet file, else who has most of it, else the first."""
    return max(members, key=lambda member: (member.spread.seed, member.held)).name


def givers(members: Sequence[Member]) -> list[Member]:
    """Those that have the model and give it."""
    return [member for member in members if member.spread.enabled and member.whole]


def takers(members: Sequence[Member]) -> list[Member]:
    """Those that take it."""
    return [member for member in members if member.spread.enabled and not member.whole]


def inside(member: Member) -> str | None:
    """Its address in the network that is set for it; None where it has none there."""
    network = member.spread.network
    if network is None:
        return None
    return next((each for each in member.addresses if IPv4Address(each) in IPv4Network(network)), None)


def listening(member: Member) -> list[str]:
    """Where it waits for others: in the network that is set, and where those are that have no address in it."""
    found = [inside(member), member.address]
    return list(dict.fromkeys(address for address in found if address is not None))


def seen_from(member: Member, other: Member) -> str | None:
    """The address under which `member` reaches `other`."""
    return inside(other) if inside(member) is not None and inside(other) is not None else other.address
