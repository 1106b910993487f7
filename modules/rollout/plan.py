"""Which hosts go when, and whether the fleet goes on. Pure: what hosts have told is all that decides.

    canary: the first that are to change, or those that the fleet file names; then they serve for a while (soak)
    batch 1 of n, batch 2 of n, …: the others, in the fleet file's order

A host of the same kind that serves already what others are to serve, and has passed, is as good as a canary: so a run
that was cut is continued by the next one, which waits for what is left of the soak.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from modules.rollout.survey import HostSurvey
from modules.spec.strategy import Strategy

CANARY = "canary"


@dataclass(frozen=True)
class Step:
    """Hosts whose turn it is together. `soak`: hosts that are watched afterwards until they have served for long."""

    name: str
    hosts: tuple[str, ...]
    soak: tuple[str, ...] = ()

    @property
    def is_canary(self) -> bool:
        """Whether a failure in it stops the fleet in any case."""
        return self.name == CANARY

    def told(self) -> str:
        """`batch 2 of 5: spark-3, spark-4`."""
        return f"{self.name}: {', '.join(self.hosts or self.soak)}"


@dataclass(frozen=True)
class Plan:
    """`id`: of what is to be served, so a run that continues has the same. `refused`: why nothing is begun.

    `settled`: hosts that are as they should be. `barred`: host → what failed on it before and is not tried again.
    `put_off`: those of them on which another service has a turn to come.
    """

    id: str
    steps: tuple[Step, ...] = ()
    settled: tuple[str, ...] = ()
    barred: Mapping[str, str] | None = None
    refused: str = ""
    put_off: tuple[str, ...] = ()

    @property
    def to_change(self) -> tuple[str, ...]:
        """The hosts that need a turn."""
        return tuple(name for step in self.steps for name in step.hosts)


def rollout_id(hosts: Iterable[HostSurvey]) -> str:
    """Eight hex digits of a hash of all that the hosts are to serve; how many hosts there are is no part of it."""
    wanted = sorted({f"{service}={wish}" for host in hosts for service, wish in host.kind})
    return hashlib.sha256("\n".join(wanted).encode()).hexdigest()[:8]


def plan(strategy: Strategy, told: Sequence[HostSurvey], groups: Mapping[str, Collection[str]], total: int) -> Plan:
    """What is to be done. `told`: in the fleet file's order; `groups`: host → its groups; `total`: the fleet's size."""
    ident = rollout_id(told)
    todo = [host for host in told if host.turn]
    barred = {host.name: host.barred for host in told if host.barred}
    settled = tuple(host.name for host in told if not host.turn and not host.barred)
    put_off = tuple(host.name for host in told if host.barred and any(part.turn for part in host.parts))
    if not todo:
        return Plan(ident, (), settled, barred, put_off=put_off)
    canary = _canary(strategy, todo, told, groups)
    if isinstance(canary, str):
        refused = canary
    elif len(barred) > strategy.max_failures:
        refused = too_many(barred, strategy.max_failures)
    else:
        refused = ""
    first = Step(CANARY, (), ()) if isinstance(canary, str) else canary
    rest = [host.name for host in todo if host.name not in first.hosts]
    size = strategy.batch_of(total)
    batches = [tuple(rest[at : at + size]) for at in range(0, len(rest), size)]
    steps = [Step(f"batch {number} of {len(batches)}", hosts) for number, hosts in enumerate(batches, 1)]
    # Nobody follows the canary, so nobody is kept from harm by waiting.
    first = first if steps else replace(first, soak=())
    lead = [first] if first.hosts or first.soak else []
    return Plan(ident, (*lead, *steps), settled, barred, refused, put_off)


def _canary(
    strategy: Strategy, todo: Sequence[HostSurvey], told: Sequence[HostSurvey], groups: Mapping[str, Collection[str]]
) -> Step | str:
    """The canary's step, which may only be one of waiting; in words, why there can be none."""
    kinds = {host.kind for host in todo}
    proved = [host for host in told if host.proved_s is not None and host.kind in kinds]
    if isinstance(strategy.canary, int):
        # Those that have served for the longest are the first to count.
        ahead = sorted(proved, key=lambda host: -(host.proved_s or 0))[: strategy.canary]
        going = todo[: max(0, strategy.canary - len(ahead))]
    else:
        named = {host.name for host in told if {host.name, *groups.get(host.name, ())} & set(strategy.canary)}
        ahead = [host for host in proved if host.name in named]
        going = [host for host in todo if host.name in named]
        if not ahead and not going and not any(host.name in named and host.proved_s is not None for host in told):
            return (
                f"none of the canaries ({', '.join(strategy.canary)}) is in this run, or came to its turn: nothing "
                "was put in force. Bring one back, or name another under strategy.canary"
            )
    young = [host.name for host in ahead if (host.proved_s or 0) < strategy.soak_s]
    soak = [*young, *(host.name for host in going)] if strategy.soak_s else []
    return Step(CANARY, tuple(host.name for host in going), tuple(soak))


def too_many(failed: Mapping[str, str], most: int) -> str:
    """Why the fleet stops: which hosts have failed, and with what."""
    told = "; ".join(f"{name}: {why}" for name, why in failed.items())
    allowed = "none may" if most == 0 else f"at most {most} may"
    count = f"{len(failed)} host{'s have' if len(failed) > 1 else ' has'} failed"
    return f"{count}, and {allowed} (strategy.max_failures): {told}"


def verdict(strategy: Strategy, step: Step, failed: Mapping[str, str], all_failed: Mapping[str, str]) -> str:
    """Why the fleet stops after a step; empty where it goes on. `failed`: in this step; `all_failed`: and before."""
    if failed and step.is_canary:
        told = "; ".join(f"{name}: {why}" for name, why in failed.items())
        return f"the canary has failed: {told}"
    return too_many(all_failed, strategy.max_failures) if len(all_failed) > strategy.max_failures else ""
