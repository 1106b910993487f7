"""Ask many hosts one thing, all at once, and come back at a deadline: with answers, and with why there is none."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from paramiko import Channel

from modules.asking.connections import BROKEN, Connections, UnreachedError

# From the first question on. A host that talks, and is busy, is waited for so long.
ANSWER_S = 10.0
_LONGEST = 8 * 1024**2


@dataclass(frozen=True)
class Answer:
    """What a host printed, and on which status it ended; None where the connection broke before."""

    out: str
    err: str
    status: int | None


@dataclass(frozen=True)
class Silent:
    """A host that gave no answer: it is unknown how it is. `why`: and what to do."""

    why: str


def ask(channel: Channel, command: str, request: str) -> Answer:
    """Run a command on a host, and read what it prints to its end."""
    channel.exec_command(command)
    # What ends before it has read all of it has something to say of it.
    with suppress(OSError):
        channel.sendall(request.encode())
        channel.shutdown_write()
    out, err = bytearray(), bytearray()
    while (piece := channel.recv(1 << 16)) and len(out) < _LONGEST:
        out += piece
    while channel.recv_stderr_ready() and (piece := channel.recv_stderr(1 << 16)):
        err += piece
    # The status may come after the end of the output; without one that never does.
    ended = channel.status_event.wait(1.0)
    status = channel.recv_exit_status() if ended else -1
    channel.close()
    return Answer(out.decode(errors="replace"), err.decode(errors="replace"), None if status == -1 else status)


class Asking:
    """Questions that are under way. Who waits for an answer in vain is a thread that ends with the process.

    `requests`: host → what it is sent.
    """

    def __init__(self, connections: Connections, command: str, requests: Mapping[str, str]) -> None:
        self._connections, self._began = connections, time.monotonic()
        self._answers: queue.SimpleQueue[tuple[str, Answer | Silent]] = queue.SimpleQueue()
        self._waiting = set(requests)
        for name, request in requests.items():
            threading.Thread(target=self._ask, args=(name, command, request), daemon=True).start()

    def _ask(self, name: str, command: str, request: str) -> None:
        try:
            self._answers.put((name, ask(self._connections.channel(name), command, request)))
        except UnreachedError as error:
            self._answers.put((name, Silent(str(error))))
        except BROKEN as error:
            self._answers.put((name, Silent(f"the connection broke: {type(error).__name__}: {error}".rstrip(": "))))

    def answers(self, answer_s: float = ANSWER_S) -> Mapping[str, Answer | Silent]:
        """Of every host, `answer_s` after the first question at the latest."""
        found: dict[str, Answer | Silent] = {}
        patience = {name: self._connections.patience(name) for name in self._waiting}
        while self._waiting - found.keys():
            now = time.monotonic() - self._began
            # Those that have said something by their time are looked at again only at the end.
            ends = [patience[name] for name in self._waiting - found.keys() if patience[name] > now]
            try:
                name, answer = self._answers.get(timeout=max(0.0, min([*ends, answer_s]) - now))
                found.setdefault(name, answer)
                continue
            except queue.Empty:
                now = time.monotonic() - self._began
            for name in self._waiting - found.keys():
                if now >= patience[name] and not self._connections.heard(name):
                    found[name] = Silent(self._connections.silence(name))
                elif now >= answer_s:
                    found[name] = Silent(self._late(name, answer_s))
        return found

    def _late(self, name: str, answer_s: float) -> str:
        return (
            f"it talks, and did not answer within {answer_s:g} s: its CPU, memory or disk may have too much to do; "
            f"look for yourself: {self._connections.login(name)}"
        )
