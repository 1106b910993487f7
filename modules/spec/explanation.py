"""Explanations: by what a gate's telemetry and log betray why it failed."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from modules.spec.base import Strict, broken_rule

# Sampled once a second while a workload runs. `other_*`: of what is neither the service nor its gate.
Series = Literal[
    "clock_mhz",
    "power_w",
    "temperature_c",
    "utilisation_percent",
    "memory_available_gib",
    "swap_used_gib",
    "other_gpu_processes",
    "other_cpu_percent",
    "requests_running",
    "requests_waiting",
    "kv_usage_percent",
    "preemptions",
]
# What the gate's client sees of a server, beside its speed (modules/hostside/gate_faults.py).
FaultKind = Literal[
    "failed-requests",
    "too-few-tokens",
    "empty-content",
    "not-streamed",
    "stalled",
    "wrong-usage",
    "server-died",
    "cached-answers",
    "wrong-answers",
    "no-requests",
    "out-of-time",
]
# `fall`: the share by which the lowest tenth of the samples lies below the highest; `rise`: last sample less the first.
Statistic = Literal["min", "p10", "median", "p90", "max", "fall", "rise"]


class SeriesSign(Strict):
    """A statistic of one series. `busy`: only of the seconds in which the GPU was used at least by half."""

    series: Series
    statistic: Statistic = "median"
    busy: bool = False
    at_least: float | None = None
    below: float | None = None

    @model_validator(mode="after")
    def _bounded(self) -> SeriesSign:
        if self.at_least is None and self.below is None:
            raise broken_rule("give at least one of at_least, below")
        return self


class DecodeSign(Strict):
    """Decode of one stream, in tokens/s, of a model (by the name that it is served as)."""

    model: str
    at_least: float = 0.0
    below: float


class Explanation(Strict):
    """A likely cause of a slow or failed measurement. Every sign that is given must be there.

    `cause`: its kind, as shown. `series`: signs in the telemetry. `log`: regular expressions, each to be found in some
    line of the engine's log. `first_run_slower`: share by which the first run of a failed figure must be worse than the
    median of its others, which agree among themselves. `strangers`: the engine had more requests at once than the
    workload has streams. `fault`: what the gate's client saw of the server. `short_by`: every failed figure misses its
    bound by this factor at least. `explains_up_to`: it costs no more than this factor, so what misses its bound by more
    has another cause. `source`: who has seen it so.
    """

    cause: str
    series: tuple[SeriesSign, ...] = ()
    log: tuple[str, ...] = ()
    decode: DecodeSign | None = None
    first_run_slower: float | None = Field(default=None, gt=0)
    strangers: bool = False
    fault: FaultKind | None = None
    short_by: float | None = Field(default=None, gt=1)
    explains_up_to: float | None = Field(default=None, gt=1)
    meaning: str
    action: str
    source: str
    verified: str = "unverified on hardware"

    @model_validator(mode="after")
    def _shows(self) -> Explanation:
        single = (self.decode, self.first_run_slower, self.fault, self.short_by)
        if not (self.series or self.log or self.strangers) and all(sign is None for sign in single):
            raise broken_rule(
                "give at least one sign: series, log, decode, first_run_slower, strangers, fault, short_by"
            )
        return self
