"""Who holds a fleet or a host for a run, and how that is told. Pure."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

# For the processes of a run that holds a fleet, which hold its hosts in the same name: the lock's, and the holder.
LOCK, HOLDER = "TINDERBOX_LOCK", "TINDERBOX_HOLDER"

# Set to 0 it leaves all of this out: for tests of what hosts do when runs meet all the same.
HOLD = "TINDERBOX_HOLD"

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


def _ago(seconds: float) -> str:
    if seconds < _MINUTE_S:
        return f"{max(0, round(seconds))} s ago"
    if seconds < _HOUR_S:
        return f"{seconds / _MINUTE_S:.0f} min ago"
    return f"{seconds / _HOUR_S:.1f} h ago"
