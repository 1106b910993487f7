"""How a program tells how far it is: `progress.json` in the directory of the job that it runs in."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

# On a host the programs lie flat beside each other.
if TYPE_CHECKING:
    from modules.hostside.atomic import write_json
else:
    from atomic import write_json

# Frequent enough for who looks every two seconds, rare enough not to wear a disk.
_INTERVAL_S = 0.5
_RATE_WINDOW_S = 15.0


def report_failure(cause: str, lines: list[str]) -> None:
    """Have a job's failure told by its cause, and below it by these lines of its log; outside of a job nothing is."""
    own = os.environ.get("TINDERBOX_JOB_DIR")
    if own:
        with suppress(OSError):
            write_json(Path(own) / "result.json", {"failed": {"cause": cause, "lines": lines}})


class Progress:
    """Reports to `directory`, by default the job's own ($TINDERBOX_JOB_DIR); outside of a job it reports nothing."""

    def __init__(self, directory: Path | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        own = os.environ.get("TINDERBOX_JOB_DIR")
        self._directory = directory if directory is not None else Path(own) if own else None
        self._clock = clock
        self._step = ""
        self._written_at = float("-inf")
        self._seen: deque[tuple[float, float]] = deque()

    def report(
        self,
        step: str,
        done: float = 0,
        total: float = 0,
        unit: str = "",
        *,
        left_s: float | None = None,
        note: str = "",
    ) -> None:
        """Say that `step` is at `done` of `total` (0: not known) in `unit`: "bytes", or a plural such as "steps".

        `left_s`: seconds to the job's end, where its program knows. `note`: what else is worth a few words.
        """
        now = self._clock()
        if step != self._step:
            self._step = step
            self._seen.clear()
        elif now - self._written_at < _INTERVAL_S and done != total:
            return
        self._seen.append((now, done))
        while now - self._seen[0][0] > _RATE_WINDOW_S:
            self._seen.popleft()
        self._written_at = now
        if self._directory is not None:
            document = {"step": step, "done": done, "total": total, "unit": unit, "rate": self._rate()}
            # As a time of day: a program that waits for a silent one reports nothing, and the time goes on.
            document |= {} if left_s is None else {"ends_at": round(time.time() + left_s)}
            document |= {"note": note} if note else {}
            # On a full disk the work may yet succeed, or fail for that with its own words.
            with suppress(OSError):
                write_json(self._directory / "progress.json", document)

    def _rate(self) -> float:
        """Per second, over the last seconds only: an average since the start hides that a download has stalled."""
        (earlier, before), (later, after) = self._seen[0], self._seen[-1]
        return max(0.0, (after - before) / (later - earlier)) if later > earlier else 0.0


class Tally:
    """Adds up what several threads have done, and reports it."""

    def __init__(self, progress: Progress, step: str, total: float, done: float = 0) -> None:
        """`step` is at `done` of `total` bytes."""
        self._progress, self._step, self._total, self._done = progress, step, total, done
        self._lock = threading.Lock()
        progress.report(step, done, total, "bytes")

    def add(self, count: int) -> None:
        """Another `count` bytes are done."""
        with self._lock:
            self._done += count
            self._progress.report(self._step, self._done, self._total, "bytes")
