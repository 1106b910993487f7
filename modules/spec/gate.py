"""Gates: workloads with thresholds that a release must pass before it counts as good."""

from __future__ import annotations

from pydantic import Field, model_validator

from modules.spec.base import Strict


class Threshold(Strict):
    """Bounds on one metric. Crossing `min` or `max` fails; crossing `warn_min` or `warn_max` warns."""

    min: float | None = None
    max: float | None = None
    warn_min: float | None = None
    warn_max: float | None = None

    @model_validator(mode="after")
    def _bounded(self) -> Threshold:
        if all(bound is None for bound in (self.min, self.max, self.warn_min, self.warn_max)):
            raise ValueError("a threshold needs at least one of min, max, warn_min, warn_max")
        return self


class BenchyWorkload(Strict):
    """A `llama-benchy` matrix. Prompt, generated and context sizes in tokens; `runs` measured after one warm-up."""

    pp: tuple[int, ...] = Field(default=(2048,), min_length=1)
    tg: tuple[int, ...] = Field(default=(128,), min_length=1)
    depth: tuple[int, ...] = Field(default=(0,), min_length=1)
    concurrency: tuple[int, ...] = Field(default=(1,), min_length=1)
    runs: int = Field(default=3, ge=2, le=50)
    time_limit_s: int = Field(default=1800, ge=10)


class Gate(Strict):
    """`thresholds`: metric → bounds, e.g. `tg128@pp2048 c1` (tokens/s, decode), `pp2048 c1` (tokens/s, prefill).

    `source`: where a published figure comes from.
    """

    workload: BenchyWorkload = BenchyWorkload()
    thresholds: dict[str, Threshold] = Field(min_length=1)
    source: str | None = None
