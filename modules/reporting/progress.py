"""Progress of long work on one or many hosts: one live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TextIO

# A log tells what moves at least every five seconds, and from one look at a host to the next it takes two.
PLAIN_INTERVAL_S = 3.0
# Of a step in which nothing moves but the clock, each line comes twice as late as the one before, and at the latest so.
UNCHANGED_INTERVAL_S = 14.0

_BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_CLEAR = "\033[K"


@dataclass(frozen=True)
class Doing:
    """What a host is at. `total` 0: not known; `rate`: `unit` per second; `left_s`: estimated; `note`: a few words."""

    title: str
    step: str = ""
    done: float = 0
    total: float = 0
    unit: str = ""
    rate: float = 0
    elapsed_s: float = 0
    left_s: float | None = None
    note: str = ""


def duration(seconds: float) -> str:
    """`42s`, `3m07s`, `2h05m`."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02}m"


def size(count: float) -> str:
    """`512 B`, `3.4 MiB`, `60.8 GiB`."""
    unit = 0
    while count >= 1024 and unit < len(_BYTE_UNITS) - 1:
        count /= 1024
        unit += 1
    return f"{count:.0f} B" if unit == 0 else f"{count:.1f} {_BYTE_UNITS[unit]}"


def wording(doing: Doing) -> str:
    """One line: how much, rate, time left, time gone, and last the step, since a narrow terminal cuts the end."""
    parts = []
    if doing.unit == "bytes":
        parts += _bytes(doing)
    elif doing.total:
        parts.append(f"{doing.done:.0f}/{doing.total:.0f} {doing.unit}".rstrip())
    parts += [] if doing.left_s is None else [f"about {_roughly(doing.left_s)} left"]
    parts.append(duration(doing.elapsed_s))
    parts += [doing.note] if doing.note else []
    parts += [doing.step] if doing.step else []
    return f"{doing.title}: {' · '.join(parts)}"


def _roughly(seconds: float) -> str:
    """An estimate is not known to the second."""
    return f"{max(5, 5 * round(seconds / 5)):.0f} s" if seconds < 57.5 else f"{round(seconds / 60):.0f} min"


def _bytes(doing: Doing) -> list[str]:
    if not doing.total:
        amount = size(doing.done)
    else:
        amount = f"{size(doing.done)} of {size(doing.total)} ({100 * doing.done / doing.total:.0f} %)"
    parts = [amount]
    if doing.rate > 0:
        parts.append(f"{size(doing.rate)}/s")
        if doing.total > doing.done:
            parts.append(f"{duration((doing.total - doing.done) / doing.rate)} left")
    return parts


@dataclass
class Board:
    """What all hosts are at. `plain(host, line)` prints a line for a host where there is no terminal to draw on."""

    plain: Callable[[str, str], None]
    stream: TextIO = field(default_factory=lambda: sys.stderr)
    live: bool = False
    clock: Callable[[], float] = time.monotonic
    _doing: dict[str, Doing] = field(default_factory=dict)
    _shown_at: dict[str, float] = field(default_factory=dict)
    _shown: dict[str, Doing] = field(default_factory=dict)
    _pause: dict[str, float] = field(default_factory=dict)

    def update(self, host: str, doing: Doing) -> None:
        """Say what `host` is at."""
        self._doing[host] = doing
        if self.live:
            self._draw()
            return
        now, timeless = self.clock(), replace(doing, elapsed_s=0)
        moved = self._shown.get(host) != timeless
        pause = PLAIN_INTERVAL_S if moved else self._pause.get(host, PLAIN_INTERVAL_S)
        if now - self._shown_at.get(host, float("-inf")) >= pause:
            self._shown_at[host], self._shown[host] = now, timeless
            self._pause[host] = PLAIN_INTERVAL_S if moved else min(2 * pause, UNCHANGED_INTERVAL_S)
            self.plain(host, wording(doing))

    def done(self, host: str) -> None:
        """`host` has nothing more to tell."""
        for kept in (self._doing, self._shown_at, self._shown, self._pause):
            kept.pop(host, None)
        if self.live:
            self._draw()

    def _draw(self) -> None:
        line = " | ".join(f"{host} {wording(doing)}" for host, doing in sorted(self._doing.items()))
        width = shutil.get_terminal_size().columns - 1
        # The clearing code stays in the line buffer, so whatever is printed next wipes the line first.
        self.stream.write(f"\r{_CLEAR}{line if len(line) <= width else line[: width - 1] + '…'}\r")
        self.stream.flush()
        self.stream.write(_CLEAR)


def can_draw(stream: TextIO) -> bool:
    """Whether the last line of the terminal is ours: pyinfra's own spinner draws there unless it is switched off."""
    return stream.isatty() and os.environ.get("PYINFRA_PROGRESS") == "off"
