"""One machine, however many names and addresses it was seen under. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from modules.bootstrap.host_keys import HostKey
from modules.discover.machine import Told

# How Sparks are called as they come: DGX Spark, and those that others build. Unverified on hardware but for the first
# two. The first digits are those of NVIDIA's network cards (IEEE's list).
_NAMES = re.compile(r"^(dgx-)?(spark|gx10|promaxgb10|edgexpert|zgx)([-_.\d]|$)", re.IGNORECASE)
_CARDS = ("48:b0:2d", "3c:6d:66", "4c:bb:47")


@dataclass(frozen=True)
class Seen:
    """An address at which something was seen. `names`: as announced, with `.local`; `key`: None: no sshd answers there.

    `told`: None: it lets this user's keys not in.
    """

    address: str
    port: int = 22
    names: tuple[str, ...] = ()
    mac: str = ""
    model: str = ""
    key: HostKey | None = None
    told: Told | None = None


@dataclass(frozen=True)
class Machine:
    """One machine with sshd. `name`: short. `addresses`: the best one first."""

    name: str
    addresses: tuple[str, ...]
    port: int
    key: HostKey
    told: Told | None
    names: tuple[str, ...]
    macs: tuple[str, ...]
    model: str

    @property
    def is_spark(self) -> bool | None:
        """Whether it is one; None: it does not say, and only its name or its network card may tell (`looks`)."""
        return None if self.told is None else self.told.is_spark

    @property
    def looks(self) -> bool:
        """Whether it looks like a Spark from outside."""
        # Not by `name`, which is of our making where it has none.
        return any(_NAMES.match(name) for name in self.names) or any(
            mac.lower().startswith(_CARDS) for mac in self.macs
        )


def merged(seen: Iterable[Seen]) -> list[Machine]:
    """The machines. One is the same as another by its machine-id, or else by its host key.

    Disks that were copied with their host keys are kept apart by their machine-ids, where these are known.
    """
    found = [one for one in seen if one.key is not None]
    of_key: dict[str, set[str]] = {}
    for one in found:
        if one.key is not None and one.told is not None and one.told.machine:
            of_key.setdefault(one.key.text, set()).add(one.told.machine)
    groups: dict[str, list[Seen]] = {}
    for one in found:
        groups.setdefault(_identity(one, of_key), []).append(one)
    machines = [_machine(group) for group in groups.values()]
    return _named_apart(sorted(machines, key=lambda one: (not one.is_spark, not one.looks, one.name)))


def _identity(one: Seen, of_key: dict[str, set[str]]) -> str:
    key = "" if one.key is None else one.key.text
    if one.told is not None and one.told.machine:
        return one.told.machine
    ids = of_key.get(key, set())
    return next(iter(ids)) if len(ids) == 1 else key


def _machine(group: Sequence[Seen]) -> Machine:
    first = next((one for one in group if one.told is not None), group[0])
    assert first.key is not None
    names = tuple(dict.fromkeys(name for one in group for name in one.names))
    addresses = sorted({one.address for one in group}, key=_rank)
    own = first.told.name if first.told is not None else ""
    short = (own or (names[0] if names else "")).partition(".")[0].lower()
    return Machine(
        name=short,
        addresses=tuple(addresses),
        port=next(one.port for one in group if one.address == addresses[0]),
        key=first.key,
        told=first.told,
        names=names,
        macs=tuple(sorted({one.mac for one in group if one.mac})),
        model=next((one.model for one in group if one.model), ""),
    )


def _rank(address: str) -> tuple[int, int]:
    """IPv4 before IPv6, and what means something on this machine's own links alone at the end."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    return (2 if parsed.is_link_local else parsed.version == 6, int(parsed))


def _named_apart(machines: Sequence[Machine]) -> list[Machine]:
    """Names that a fleet file takes, each once; who has none is numbered."""
    taken: set[str] = set()
    result = []
    for one in machines:
        base = re.sub(r"[^a-z0-9-]+", "-", one.name).strip("-")
        unnamed = "spark" if one.is_spark or one.looks else "machine"
        base = base if len(base) > 1 and not base.isdigit() else unnamed
        tries = [base] if base != unnamed else []
        name = next(each for each in (*tries, *(f"{base}-{n}" for n in range(1, 10_000))) if each not in taken)
        taken.add(name)
        result.append(Machine(**{**one.__dict__, "name": name}))
    return result
