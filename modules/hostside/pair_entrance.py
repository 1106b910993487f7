"""Connections to the head that have yet to prove themselves: few, not for long, and none keeps another source's out."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from contextlib import suppress

# A member proves itself within milliseconds.
MOST_UNPROVED = 8


class Entrance:
    """Who stands in it. Whoever comes is let in; where it is full, the oldest of the source that has the most goes."""

    def __init__(self, most: int = MOST_UNPROVED) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._inside: dict[socket.socket, str] = {}  # in the order in which they came

    def enter(self, connection: socket.socket, source: str) -> None:
        """Let a connection in. `source`: the address that it comes from."""
        with self._lock:
            self._inside[connection] = source
            if len(self._inside) <= self._most:
                return
            crowd = Counter(self._inside.values())
            most = max(crowd.values())
            gone = next(one for one, its in self._inside.items() if crowd[its] == most)
            del self._inside[gone]
        # Its thread is woken, and closes it.
        with suppress(OSError):
            gone.shutdown(socket.SHUT_RDWR)

    def leave(self, connection: socket.socket) -> None:
        """It has proved itself, or is to be closed."""
        with self._lock:
            self._inside.pop(connection, None)
