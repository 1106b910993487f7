"""Lines that say what set-up does, and for how long it has been at it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import typer

_EVERY_SECONDS = 5.0


class Progress:
    """Prints a line when a step ends, and every few seconds which steps are still under way."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._running: dict[str, float] = {}
        self._lock = threading.Lock()
        self._over = threading.Event()

    @contextmanager
    def shown(self) -> Iterator[Progress]:
        """While this lasts, steps that take long are named again and again."""
        ticker = threading.Thread(target=self._tick, daemon=True)
        ticker.start()
        try:
            yield self
        finally:
            self._over.set()
            ticker.join()

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        """One step. A step that fails is reported by its exception, not here."""
        began = time.monotonic()
        with self._lock:
            self._running[what] = began
        try:
            yield
            self.say(f"{what} ({time.monotonic() - began:.1f} s)")
        finally:
            with self._lock:
                del self._running[what]

    def say(self, what: str) -> None:
        """One line, with the seconds since the start."""
        typer.echo(f"[{time.monotonic() - self._began:6.1f} s] {what}")

    def _tick(self) -> None:
        while not self._over.wait(_EVERY_SECONDS):
            now = time.monotonic()
            with self._lock:
                running = [f"{what} ({now - began:.0f} s)" for what, began in self._running.items()]
            if running:
                self.say("... " + " · ".join(running))
