"""Baselines: figures that others published, as they published them."""

from __future__ import annotations

from pydantic import Field

from modules.spec.base import Strict


class Figure(Strict):
    """A measured value. `std`: standard deviation between runs, where given."""

    value: float
    std: float | None = Field(default=None, ge=0)
    unit: str


class Baseline(Strict):
    """One published measurement on one DGX Spark.

    `workload`: the command line that its author ran. `figures`: metric → value. `gate`: the gate that tests against it,
    where our workloads can. `caveat`: what to know before comparing.
    """

    engine: str
    model: str
    workload: str
    settings: str | None = None
    figures: dict[str, Figure] = Field(min_length=1)
    gate: str | None = None
    caveat: str | None = None
    measured: str
    source: str
