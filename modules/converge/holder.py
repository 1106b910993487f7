"""Who holds a fleet, and how that is told. Pure."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

_MINUTE_S, _HOUR_S = 60, 3600


@dataclass(frozen=True)
class Holder:
    """A run that changes a fleet. `since`: seconds of the epoch; `fleet`: its fleet file."""

    user: str
    machine: str
    pid: int
    deploy: str
    since: float
    fleet: str

    def document(self) -> str:
        """What stands in the lock: a line of JSON."""
        return json.dumps(asdict(self)) + "\n"

    def text(self, now: float) -> str:
        """Who that is, and since when."""
        at = datetime.fromtimestamp(self.since, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return (
            f"{self.user}@{self.machine}, process {self.pid}, {self.deploy} of {self.fleet}, since {at} "
            f"({_ago(now - self.since)})"
        )


def parse_holder(text: str) -> Holder | None:
    """The holder that a lock names; None: nobody, or what stands there is not understood."""
    try:
        found = json.loads(text)
        return Holder(
            user=str(found["user"]),
            machine=str(found["machine"]),
            pid=int(found["pid"]),
            deploy=str(found["deploy"]),
            since=float(found["since"]),
            fleet=str(found["fleet"]),
        )
    except (ValueError, KeyError, TypeError):
        return None


def refused_text(fleet: str, holder: Holder | None, lock: str, *, alive: bool, now: float) -> str:
    """Why a run does not begin, and what to do. `alive`: whether the holder's own process is still there."""
    who = holder.text(now) if holder is not None else "somebody whose name is not in the lock yet"
    if holder is None:
        ended = f"end it there with Ctrl-C (its processes: fuser -v {lock})"
    elif alive:
        ended = f"end it with Ctrl-C there (or: kill -INT {holder.pid})"
    else:
        ended = f"that process is gone, but the pyinfra that it had started goes on: see fuser -v {lock}"
    return (
        f"fleet {fleet} is being changed by another run: {who}.\nOne run at a time changes a fleet: wait until it has "
        f"ended, or {ended}. Jobs on hosts outlive it, and the next run picks them up.\n"
        f"Dry runs (--dry, --drift) and reports need no lock. The lock: {lock}"
    )


def taken_over_text(holder: Holder, now: float) -> str:
    """What is said where the last holder went without giving the lock back."""
    return (
        f"an earlier run ended without notice (killed, or its machine restarted): {holder.text(now)}. "
        "This run takes over, and finishes what it left"
    )


def _ago(seconds: float) -> str:
    if seconds < _MINUTE_S:
        return f"{max(0, round(seconds))} s ago"
    if seconds < _HOUR_S:
        return f"{seconds / _MINUTE_S:.0f} min ago"
    return f"{seconds / _HOUR_S:.1f} h ago"
