"""One host's journals, over a connection that may break: taken up again where they ended, without loss or doubles."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from paramiko import Channel

from modules.asking.connections import BROKEN, Connections, UnreachedError
from modules.asking.program import command, request
from modules.logs.line import document_of

_MODULES = ("masking", "tell_journal")
# A host says something every 5 s, also where nothing is logged.
SILENCE_S = 16.0
_ALIVE_S = 5.0
_WAITS_S = (1, 2, 4, 8, 15)


@dataclass(frozen=True)
class Wish:
    """What a host is asked to tell: see `tell_journal.py`. `attached`: signs of life follow."""

    units: tuple[str, ...]
    follow: bool
    lines: int
    since: float | None = None
    cursor: str | None = None
    attached: bool = True

    def request(self) -> str:
        """As the host reads it, with the program before it."""
        wish = {name: getattr(self, name) for name in ("units", "follow", "lines", "since", "cursor", "attached")}
        return f"{request(*_MODULES)}{json.dumps(wish)}\n"


@dataclass(frozen=True)
class Told:
    """`kind`: entry, live, root, lost (why, in `why`), back (reached again), or end (no more will come)."""

    source: str
    kind: str
    document: dict[str, Any] | None = None
    why: str = ""


class Reader:
    """Reads one host in a thread of its own, which ends with the process. What it finds goes to `told`."""

    def __init__(
        self, connections: Connections, name: str, source: str, wish: Wish, told: queue.SimpleQueue[Told]
    ) -> None:
        self._connections, self._name, self._source, self._wish, self._told = connections, name, source, wish, told
        self._stop = threading.Event()

    def start(self) -> None:
        """Begin."""
        threading.Thread(target=self._run, daemon=True).start()

    def stop(self) -> None:
        """Try nothing more. The connection's end ends what is under way, here and on the host."""
        self._stop.set()

    def _run(self) -> None:
        lost, tries = False, 0
        while not self._stop.is_set():
            why = "the connection broke"
            try:
                channel = self._connections.channel(self._name)
                for line in self._lines(channel):
                    found = document_of(line)
                    if found is None:
                        continue
                    if lost:
                        self._say("back")
                        lost = False
                    tries = 0
                    self._take(found)
                why = self._ended(channel)
                if not why:
                    break
            except UnreachedError as error:
                why = str(error)
            except TimeoutError:
                why = f"it has said nothing for {SILENCE_S:.0f} s"
            except BROKEN as error:
                why = f"the connection broke ({type(error).__name__}{f': {error}' if str(error) else ''})"
            if self._stop.is_set():
                return
            if not lost:
                self._say("lost", why=why)
            lost = True
            self._connections.close(self._name)
            if not self._wish.follow or self._stop.wait(_WAITS_S[min(tries, len(_WAITS_S) - 1)]):
                break
            tries += 1
        self._say("end")

    def _say(self, kind: str, document: dict[str, Any] | None = None, why: str = "") -> None:
        self._told.put(Told(self._source, kind, document, why))

    def _take(self, found: dict[str, Any]) -> None:
        """From the newest one that is here whole, the next connection goes on."""
        if found.get("cursor"):
            self._wish = replace(self._wish, cursor=str(found["cursor"]))
        if "at" in found:
            self._say("entry", found)
        elif "live" in found:
            if not self._wish.cursor:
                self._wish = replace(self._wish, since=float(found["live"]))
            self._say("live")
        elif "root" in found:
            self._say("root", found)

    def _lines(self, channel: Channel) -> Iterator[str]:
        """As they come; a line that was cut is none."""
        channel.settimeout(SILENCE_S)
        channel.exec_command(command())
        channel.sendall(self._wish.request().encode())
        alive = threading.Event()
        threading.Thread(target=_say_that_we_are_here, args=(channel, alive), daemon=True).start()
        try:
            left = b""
            while piece := channel.recv(1 << 16):
                *whole, left = (left + piece).split(b"\n")
                yield from (line.decode(errors="replace") for line in whole)
        finally:
            alive.set()

    def _ended(self, channel: Channel) -> str:
        """Why a program ended that should have gone on, or that failed; empty where it has told all."""
        status = channel.recv_exit_status() if channel.status_event.wait(2.0) else -1
        said = channel.recv_stderr(1 << 16).decode(errors="replace").strip() if channel.recv_stderr_ready() else ""
        if status == -1:
            return "the connection broke"
        if status or self._wish.follow:
            return f"journalctl ended with status {status}{f': {said.splitlines()[-1]}' if said else ''}"
        return ""


def _say_that_we_are_here(channel: Channel, end: threading.Event) -> None:
    while not end.wait(_ALIVE_S):
        try:
            channel.sendall(b"\n")
        except BROKEN:
            return
