"""From values to places on a drawing."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """`low` to `high` are drawn from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The place of a value."""
        span = self.high - self.low
        return self.start if span == 0 else self.start + (value - self.low) / span * (self.end - self.start)

    def ticks(self, count: int = 3) -> list[float]:
        """Some round values that lie within."""
        step = round_step((self.high - self.low) / max(1, count))
        first = math.ceil(self.low / step) * step
        return [first + index * step for index in range(int((self.high - first) / step + 1e-9) + 1)]


def round_step(step: float) -> float:
    """The next 1, 2, 2.5 or 5 times a power of ten."""
    if step <= 0:
        return 1.0
    magnitude = math.pow(10, math.floor(math.log10(step)))
    return next(factor * magnitude for factor in (1, 2, 2.5, 5, 10) if factor * magnitude >= step - 1e-12)
