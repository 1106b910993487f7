"""What a benchmark found."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Result:
    """`ratio` is the figure that is bounded; `ours` and `peer` are in `unit`. `details`: further figures by name."""

    ours: float
    peer: float
    ratio: float
    unit: str
    workload: str
    commands: tuple[str, ...]
    details: dict[str, float] = field(default_factory=dict)
