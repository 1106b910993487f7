"""Tell gateways whether this host takes requests for a service: one line in, the service's name, and one line out.

    agent.py   (by systemd, with its socket)

`ready up 100%`: it serves. `drain`: nothing new, it is about to be stopped or is being measured. `down #why`: its unit
is not active, or the watchdog has seen neither a reply nor a counter that moved. HAProxy asks by `agent-check`; who is
not one of the gateways of /etc/tinderbox/agent.json gets no answer.
"""

from __future__ import annotations

import json
import socket
import socketserver
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.atomic import read_json, write_text
    from modules.hostside.drain import SETTINGS, TOLD, addresses_of, told_file
    from modules.hostside.drain_mark import MARKS, Mark
    from modules.hostside.service_unit import run, unit_name, watch_unit
    from modules.hostside.watch_note import GENERATED, note_file
else:
    from atomic import read_json, write_text
    from drain import SETTINGS, TOLD, addresses_of, told_file
    from drain_mark import MARKS, Mark
    from service_unit import run, unit_name, watch_unit
    from watch_note import GENERATED, note_file

_FIRST_SOCKET = 3  # systemd's own convention
_LONGEST_NAME = 256
_TIMEOUT_S = 2.0
# systemd is asked no oftener, however many gateways there are.
_KEPT_S = 0.8
READY, DRAIN = "ready up 100%", "drain"
_WATCHES_NOT = {"inactive", "failed"}
Units = Callable[[str], str]


def answer(
    service: str, settings: dict[str, Any], unit: Units, marks: Path = MARKS, generated: Path = GENERATED
) -> str:
    """The line for a service. `unit`: the state of a unit."""
    if service not in settings.get("services", {}):
        return "down #no such service on this host"
    if Mark(service, marks).counts:
        return DRAIN
    state = unit(unit_name(service))
    if state != "active":
        return f"down #its unit is {state or 'unknown'}"
    note = read_json(note_file(service, generated)) or {}
    misses, at = note.get("misses"), note.get("at")
    # What a watchdog that watches no more has seen last, nothing would ever put right.
    if isinstance(misses, int) and misses > 0 and unit(watch_unit(service)) not in _WATCHES_NOT:
        since = f" for {max(0.0, time.time() - at):.0f} s" if isinstance(at, int | float) else ""
        return f"down #it has generated nothing{since}"
    return READY


class UnitStates:
    """States of units, each kept for a moment."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[str, tuple[float, str]] = {}

    def __call__(self, unit: str) -> str:
        """Systemd's ActiveState of a unit; empty where systemd does not answer."""
        asked, state = self._known.get(unit, (-_KEPT_S, ""))
        if self._clock() - asked >= _KEPT_S:
            state = (run("systemctl", "show", "--property=ActiveState", "--value", unit) or "").strip()
            self._known[unit] = self._clock(), state
        return state


def note_told(service: str, peer: str, told: Path = TOLD, clock: Callable[[], float] = time.monotonic) -> None:
    """Note that this gateway knows of the drain: who waits for that goes on."""
    path = told_file(service, told)
    write_text(path, json.dumps({**(read_json(path) or {}), peer: clock()}))


def peer_of(address: str) -> str:
    """An IPv4 address that a socket for both shows as IPv6 is the IPv4 one."""
    return address.removeprefix("::ffff:")


class Answering(socketserver.StreamRequestHandler):
    """One question."""

    timeout = _TIMEOUT_S
    units = UnitStates()

    def handle(self) -> None:
        """Answer it, or nothing to a stranger."""
        settings: dict[str, Any] = read_json(SETTINGS) or {}
        peer = peer_of(str(self.client_address[0]))
        if peer not in addresses_of(settings.get("gateways") or ()):
            return
        with suppress(OSError):
            service = self.rfile.readline(_LONGEST_NAME).decode("utf-8", "replace").strip()
            line = answer(service, settings, self.units)
            if line == DRAIN:
                # Before it is sent: whoever waits for this also waits for what is on its way.
                note_told(service, peer)
            self.wfile.write(f"{line}\n".encode())


class Server(socketserver.ThreadingTCPServer):
    """On the socket that systemd has opened."""

    daemon_threads = True

    def __init__(self, listening: socket.socket) -> None:
        super().__init__(listening.getsockname(), Answering, bind_and_activate=False)
        self.socket.close()
        self.socket = listening


def main() -> int:
    """Answer until systemd ends this."""
    with socket.socket(fileno=_FIRST_SOCKET) as listening:
        Server(listening).serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
