"""How the members of a service that spans hosts speak to each other: lines of JSON over TCP, each with its proof.

Both sides know one key. Each proves it over a number that the other has just made up, so nothing that was recorded can
be said again; what follows is proved by a key of this connection, with its direction and its place in the order.
Nothing said here is secret, so it is not hidden: it must only be nobody else's.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import socket
import time
from contextlib import suppress
from typing import Any

LONGEST = 4 << 20  # bytes of a line: the story of some hundred releases
# Of a line of whoever has not proved himself yet.
_LONGEST_HELLO = 4096
HELLO_S = 5.0


class WireError(Exception):
    """The other side does not know the key, or says what can not be understood."""


def proof(key: bytes, *parts: str) -> str:
    """Over the parts, which no two lists of parts have in common."""
    return hmac.new(key, json.dumps(parts).encode(), hashlib.sha256).hexdigest()


def is_proved(said: object, wanted: str) -> bool:
    """Whether that is the proof. In bytes, since of text only ASCII is compared, and a stranger may say anything."""
    return hmac.compare_digest(str(said).encode(), wanted.encode())


class Channel:
    """One connection that both sides have proved. `peer`: the name of who is at the other end."""

    def __init__(self, connection: socket.socket, key: bytes, says: str, hears: str, peer: str) -> None:
        self.peer = peer
        self._connection, self._key, self._says, self._hears = connection, key, says, hears
        self._said = self._heard = 0
        self._left = b""

    def say(self, message: dict[str, Any]) -> None:
        """Send one message. Raises `OSError`."""
        text = json.dumps(message, sort_keys=True)
        self._said += 1
        mark = proof(self._key, self._says, str(self._said), text)
        self._connection.sendall(f"{mark} {text}\n".encode())

    def hear(self) -> dict[str, Any]:
        """The next message. Raises `WireError`, and `OSError` when none comes in time or ever."""
        line, self._left = read_line(self._connection, self._left)
        mark, _, text = line.partition(" ")
        self._heard += 1
        if not is_proved(mark, proof(self._key, self._hears, str(self._heard), text)):
            raise WireError("a message without its proof")
        return _object(text)

    def wake(self) -> None:
        """Have who waits in `hear` find its end."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End it; who waits in `hear` is woken."""
        self.wake()
        self._connection.close()


def read_line(
    connection: socket.socket, left: bytes = b"", longest: int = LONGEST, until: float | None = None
) -> tuple[str, bytes]:
    """A line, and what came after it. Raises `OSError` at the end, `WireError` for one that does not end.

    `until`: of the monotonic clock; when it has to be here as a whole.
    """
    while b"\n" not in left:
        if until is not None:
            connection.settimeout(max(0.001, until - time.monotonic()))
        more = connection.recv(65536)
        if not more:
            raise ConnectionResetError("the other side has hung up")
        left += more
        if len(left) > longest:
            raise WireError("a line that does not end")
    line, _, left = left.partition(b"\n")
    return line.decode(errors="replace"), left


def welcome(connection: socket.socket, key: bytes, service: str, silence_s: float) -> Channel:
    """As the head: have whoever has connected prove itself. `silence_s`: after which `hear` gives up."""
    until = time.monotonic() + HELLO_S
    connection.settimeout(HELLO_S)
    mine = secrets.token_hex(16)
    connection.sendall(json.dumps({"service": service, "nonce": mine}).encode() + b"\n")
    told, left = read_line(connection, longest=_LONGEST_HELLO, until=until)
    hello = _object(told)
    host, theirs = str(hello.get("host")), str(hello.get("nonce"))
    if left or not is_proved(hello.get("proof"), proof(key, "worker", service, host, mine, theirs)):
        raise WireError("it does not know the key")
    answer = {"proof": proof(key, "head", service, host, mine, theirs)}
    connection.sendall(json.dumps(answer).encode() + b"\n")
    connection.settimeout(silence_s)
    return Channel(connection, _session(key, service, mine, theirs), "head", "worker", host)


def enter(connection: socket.socket, key: bytes, service: str, host: str, silence_s: float) -> Channel:
    """As a worker: prove itself to the head, and have the head do so."""
    until = time.monotonic() + HELLO_S
    told, left = read_line(connection, longest=_LONGEST_HELLO, until=until)
    theirs, mine = str(_object(told).get("nonce")), secrets.token_hex(16)
    hello = {"host": host, "nonce": mine, "proof": proof(key, "worker", service, host, theirs, mine)}
    connection.sendall(json.dumps(hello).encode() + b"\n")
    told, left = read_line(connection, left, _LONGEST_HELLO, until)
    if left or not is_proved(_object(told).get("proof"), proof(key, "head", service, host, theirs, mine)):
        raise WireError("the head does not know the key")
    connection.settimeout(silence_s)
    return Channel(connection, _session(key, service, theirs, mine), "worker", "head", "head")


def _session(key: bytes, service: str, head: str, worker: str) -> bytes:
    return proof(key, "session", service, head, worker).encode()


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise WireError("what came is no JSON object")
    return found
