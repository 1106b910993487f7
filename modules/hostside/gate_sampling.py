"""Host, GPU and engine, sampled once a second while a workload runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside import engine_sample, gpu_sample, host_sample
else:
    import engine_sample
    import gpu_sample
    import host_sample

INTERVAL_S = 1.0
# Two hours; a plot shows no more, and a result that holds more only grows.
LONGEST = 7200
Sample = dict[str, "float | None"]


def sampler(url: str, key: str | None = None) -> Callable[[], Sample]:
    """What takes one sample of everything; None for what can not be read. `key`: the engine's API key."""
    host = host_sample.HostSampler(host_sample.containers())
    nothing: Sample = dict.fromkeys(gpu_sample.FIELDS)

    def take() -> Sample:
        return {**(gpu_sample.sample() or nothing), **host.sample(), **engine_sample.sample(url, key)}

    return take


class Sampling(threading.Thread):
    """Samples until it is left (a context manager). `series`: name → values, one a second."""

    def __init__(self, take: Callable[[], Sample], interval_s: float = INTERVAL_S) -> None:
        super().__init__(daemon=True)
        self._take = take
        self._interval_s = interval_s
        self._ended = threading.Event()
        self.samples: list[Sample] = []

    def run(self) -> None:  # noqa: D102
        due = time.monotonic()
        while not self._ended.is_set() and len(self.samples) < LONGEST:
            self.samples.append(self._take())
            # A second that a slow nvidia-smi has eaten is left out, so that one sample stays one second.
            now = time.monotonic()
            due = max(due + self._interval_s, now)
            self._ended.wait(due - now)

    def series(self) -> dict[str, list[float | None]]:
        """By name."""
        taken = list(self.samples)
        return {name: [one.get(name) for one in taken] for name in (taken[0] if taken else {})}

    def __enter__(self) -> Sampling:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self.join(timeout=30)


def joined(former: dict[str, list[float | None]], new: dict[str, list[float | None]]) -> dict[str, list[float | None]]:
    """One series after the other."""
    names = dict.fromkeys([*former, *new])
    lengths = max(map(len, former.values()), default=0), max(map(len, new.values()), default=0)

    def of(name: str) -> list[float | None]:
        return [*(former.get(name) or [None] * lengths[0]), *(new.get(name) or [None] * lengths[1])]

    return {name: of(name)[:LONGEST] for name in names}
