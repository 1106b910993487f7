"""The connections between the members of a service that spans hosts: who was heard, what was said, and when.

Each side says what it last published once a second. Whoever is silent for `SILENCE_S` counts as lost.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.pair_entrance import Entrance
    from modules.hostside.pair_wire import Channel, WireError, enter, welcome
else:
    from pair_entrance import Entrance
    from pair_wire import WireError, enter, welcome

BEAT_S = 1.0
# A reboot takes longer, a busy host's pause is shorter.
SILENCE_S = 15.0
# The agent itself is told by its silence, too: it may hang where its threads do not.
_STUCK_S = 120.0
# Of those that have proved themselves; each member needs one.
_MOST = 32

Message = dict[str, Any]


class Links:
    """What was heard of each peer, and what is to be said to it. `say`: peer, what it last said → what to say."""

    def __init__(self, say: Callable[[str, Message], Message], tell: Callable[[str], None]) -> None:
        self._say, self._tell = say, tell
        self._lock = threading.Lock()
        self._heard: dict[str, tuple[float, Message]] = {}
        self._began = self._ticked = time.monotonic()
        self._entrance = Entrance()
        self._proved: list[Channel] = []

    def tick(self) -> None:
        """The agent is alive."""
        self._ticked = time.monotonic()

    def heard(self) -> dict[str, Message]:
        """What each peer last said, of those that are not lost."""
        with self._lock:
            return {name: said for name, (at, said) in self._heard.items() if time.monotonic() - at < SILENCE_S}

    def lost(self, name: str) -> bool:
        """Whether a peer was not heard for too long; nobody is, before there was time for it."""
        with self._lock:
            at = self._heard.get(name, (self._began, {}))[0]
        return time.monotonic() - max(at, self._began) >= SILENCE_S

    def serve(self, address: str, port: int, key: bytes, service: str) -> None:
        """As the head: let members in, without end. An address that this host has yet to get is waited for."""
        while True:
            try:
                family = socket.AF_INET6 if ":" in address else socket.AF_INET
                with socket.create_server((address, port), family=family) as server:
                    self._tell(f"listening for members at {address} port {port}")
                    while True:
                        connection, source = server.accept()
                        self._entrance.enter(connection, str(source[0]))
                        threading.Thread(target=self._welcomed, args=(connection, key, service), daemon=True).start()
            except OSError as error:
                self._tell(f"can not listen at {address} port {port}: {error}")
                time.sleep(BEAT_S)

    def _welcomed(self, connection: socket.socket, key: bytes, service: str) -> None:
        try:
            channel = welcome(connection, key, service, SILENCE_S)
            self._entrance.leave(connection)
            self._admit(channel)
            try:
                self._talk(channel)
            finally:
                with self._lock:
                    self._proved.remove(channel)
        except (OSError, WireError, ValueError) as error:
            self._tell(f"a connection was closed: {error}")
        finally:
            self._entrance.leave(connection)
            connection.close()

    def _admit(self, channel: Channel) -> None:
        """A member that comes again has lost the connection that it had; beyond that, the oldest goes."""
        with self._lock:
            gone = [one for one in self._proved if one.peer == channel.peer]
            gone += self._proved[:1] if not gone and len(self._proved) >= _MOST else []
            self._proved.append(channel)
        for one in gone:
            one.wake()

    def join(self, address: str, port: int, key: bytes, service: str, host: str) -> None:
        """As a worker: be connected to the head, without end."""
        told = ""
        while True:
            try:
                with socket.create_connection((address, port), timeout=5) as connection:
                    channel = enter(connection, key, service, host, SILENCE_S)
                    self._tell(f"connected to the head at {address} port {port}")
                    told = ""
                    self._talk(channel)
            except (OSError, WireError, ValueError) as error:
                if str(error) != told:
                    self._tell(f"not connected to the head at {address} port {port}: {error}")
                    told = str(error)
            time.sleep(BEAT_S)

    def _talk(self, channel: Channel) -> None:
        """Hear until the connection ends; a second thread speaks."""
        threading.Thread(target=self._speak, args=(channel,), daemon=True).start()
        try:
            while True:
                said = channel.hear()
                with self._lock:
                    self._heard[channel.peer] = (time.monotonic(), said)
        finally:
            channel.close()

    def _speak(self, channel: Channel) -> None:
        try:
            while time.monotonic() - self._ticked < _STUCK_S:
                with self._lock:
                    said = self._heard.get(channel.peer, (0.0, {}))[1]
                channel.say(self._say(channel.peer, said))
                time.sleep(BEAT_S)
        except OSError:
            pass
        channel.close()
