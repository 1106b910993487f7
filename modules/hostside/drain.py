"""Take a service out of its gateways' turn, wait until nothing of theirs runs in it, and put it back.

    drain.py hold SERVICE [--measure]
    drain.py stay SERVICE
    drain.py open SERVICE [--if-good]

Whether this host takes requests for a service is said here, by a mark under /run/tinderbox/drain; `agent.py` tells the
gateways, which ask it about once a second. `hold` marks, waits until each gateway was told so since, and then until the
engine counts no request and no connection of a gateway is open: for so long as /etc/tinderbox/agent.json allows, since
a reply may take an hour. `open` takes the mark away; `--if-good`: only where the last good release is the one in force.
A host of a fleet without a gateway has no such file, and nothing is done. A boot forgets all marks.

`hold --measure` is for a server that goes on serving: its mark counts for 3 minutes, and for as long after each `stay`,
which whoever measures says again and again (drain_lease.py). So the host takes requests again by itself where that one
is gone. A mark without an end, of a server that is about to be stopped or is not proved yet, is left as it is.
"""

from __future__ import annotations

import argparse
import socket
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside import connections, engine_sample
    from modules.hostside.api_key import variables
    from modules.hostside.atomic import read_json
    from modules.hostside.drain_mark import MARKS, Mark
    from modules.hostside.ledger import STATE, Ledger
    from modules.hostside.service_unit import unit_name, unit_state
else:
    import connections
    import engine_sample
    from api_key import variables
    from atomic import read_json
    from drain_mark import MARKS, Mark
    from ledger import STATE, Ledger
    from service_unit import unit_name, unit_state

SETTINGS = Path("/etc/tinderbox/agent.json")
# The agent's own, in which it notes whom it has told that a service is drained.
TOLD = Path("/run/tinderbox-agent")
# A gateway that does not ask for so long is down, or not set up yet.
_TOLD_S = 10.0
_PAUSE_S = 0.3
# What a gateway has sent on its way before it was told is here by then.
_ON_ITS_WAY_S = 0.5
Say = Callable[[str], None]


def told_file(service: str, told: Path = TOLD) -> Path:
    """Gateway's address → when it was last told so, by the clock that no one sets."""
    return told / f"{service}.told"


@dataclass(frozen=True)
class Engine:
    """What a service's engine is doing. `requests`: by its own counters; `open_connections`: a gateway's with it."""

    requests: Callable[[], int | None]
    open_connections: Callable[[], int]

    @classmethod
    def of(cls, settings: dict[str, Any], gateways: Iterable[str]) -> Engine:
        """By what agent.json says of the service."""
        file, variable = settings.get("secret_file"), settings.get("key_variable")
        key = variables(Path(file)).get(str(variable)) if file else None
        addresses = frozenset(gateways)

        def requests() -> int | None:
            found = engine_sample.sample(settings["url"], key)
            counted = [found[name] for name in ("requests_running", "requests_waiting")]
            known = [int(one) for one in counted if one is not None]
            return sum(known) if known else None

        return cls(requests, lambda: connections.established(int(settings["port"]), addresses))

    def busy(self) -> int:
        """How many requests it has at least."""
        return max(self.requests() or 0, self.open_connections())


@dataclass(frozen=True)
class Door:
    """A service's door on this host. All but the service differs only in tests."""

    service: str
    settings: Path = SETTINGS
    marks: Path = MARKS
    told: Path = TOLD
    engine: Callable[[dict[str, Any], Iterable[str]], Engine] = Engine.of
    serves: Callable[[str], bool] = field(
        default=lambda service: unit_state(unit_name(service)).get("ActiveState") == "active"
    )
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    @property
    def has_gateway(self) -> bool:
        """Whether a gateway of the fleet sends requests to the service on this host."""
        return self.service in self._document().get("services", {})

    @property
    def mark(self) -> Mark:
        """What says that it takes no requests."""
        return Mark(self.service, self.marks, self.clock)

    @property
    def is_closed(self) -> bool:
        """Whether it takes no requests."""
        return self.mark.counts

    def _document(self) -> dict[str, Any]:
        return read_json(self.settings) or {}

    def close(self, *, measure: bool = False) -> None:
        """Mark it, where a gateway is to heed that; one that is marked keeps its mark. `measure`: see above."""
        if self.has_gateway:
            self.mark.put(measure=measure)

    def open(self) -> None:
        """Have it take requests again."""
        self.mark.take_away()

    def hold(self, say: Say, *, measure: bool = False) -> int:
        """Mark it, and wait until nothing of a gateway runs. Returns how many requests ran on when time was up."""
        self.close(measure=measure)
        if not self.has_gateway or not self.serves(self.service):
            return 0
        document = self._document()
        gateways = addresses_of(document.get("gateways") or ())
        say("draining: waiting until the gateways send it nothing more")
        self._until_told(gateways)
        self.sleep(_ON_ITS_WAY_S)
        return self._until_idle(self.engine(document["services"][self.service], gateways), document, say)

    def _until_told(self, gateways: set[str]) -> None:
        since = self.mark.since
        deadline = self.clock() + _TOLD_S
        while self.clock() < deadline:
            told = read_json(told_file(self.service, self.told)) or {}
            late = {one for one in gateways if not _is_after(told.get(one), since)}
            if not late:
                return
            self._pause()

    def _pause(self) -> None:
        self.mark.stay()
        self.sleep(_PAUSE_S)

    def _until_idle(self, engine: Engine, document: dict[str, Any], say: Say) -> int:
        deadline = self.clock() + float(document.get("drain_s", 0))
        idle = 0
        while True:
            busy = engine.busy()
            idle = 0 if busy else idle + 1
            # Twice, since a request is between its connection and the engine's counter for a moment.
            if idle == 2:
                return 0
            if self.clock() >= deadline:
                say(f"draining: {busy} requests still run after {document.get('drain_s')} s, and are ended")
                return busy
            if busy:
                say(f"draining: {busy} requests still run")
            self._pause()


def _is_after(told: object, since: object) -> bool:
    return isinstance(told, int | float) and isinstance(since, int | float) and told >= since


def addresses_of(names: Iterable[str]) -> set[str]:
    """The addresses from which gateways ask; of a name, all that it stands for, and none where nobody knows it."""
    found: set[str] = set()
    for name in names:
        with suppress(OSError):
            found |= {str(entry[4][0]) for entry in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)}
    return found


def main(arguments: list[str]) -> int:
    """0 when it is done, also where requests ran on."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["hold", "stay", "open"])
    parser.add_argument("service")
    parser.add_argument("--if-good", action="store_true")
    parser.add_argument("--measure", action="store_true")
    options = parser.parse_args(arguments)
    door = Door(options.service)
    if options.verb == "stay":
        door.mark.stay()
        return 0
    if options.verb == "hold":
        told: list[str] = []
        door.hold(lambda step: told.append(step) if step not in told[-1:] else None, measure=options.measure)
        print("\n".join(told))
        return 0
    ledger = Ledger(options.service, STATE)
    current = ledger.linked("current")
    if not options.if_good or (current is not None and current == ledger.linked("last-good")):
        door.open()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
