"""Gates: workloads with thresholds that a release must pass before it counts as good."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from modules.spec.answers import Answers
from modules.spec.base import NAMED, WRITTEN_OUT, Strict, broken_rule, named_or_written_out
from modules.spec.workload import COLD_START_METRICS, BenchyWorkload, RandomWorkload, ShareGptWorkload

__all__ = ["BenchyWorkload", "Gate", "Threshold", "Worse"]

AnswersChoice = Annotated[
    Annotated[str, Tag(NAMED)] | Annotated[Answers, Tag(WRITTEN_OUT)], Discriminator(named_or_written_out)
]
# The workloads by the names that results and metrics have for them, in the order in which they run: a host that has
# answered only a few requests is cooler than one that has been measured for an hour.
BENCHY, RANDOM, SHAREGPT, ANSWERS, COLD_START = "benchy", "random", "sharegpt", "answers", "cold_start"
ORDER = (COLD_START, ANSWERS, BENCHY, RANDOM, SHAREGPT)
# Beside the measured requests: load of the tokenizer, warm-ups, a discarded run for each cell.
OVERHEAD_S = 120
# Where the client runs.
HOST, CONTROLLER = "host", "controller"


class Worse(Strict):
    """The share by which a metric may be worse than a reference: beyond 0.05 is more than 5 % slower, or longer.

    docs/gates.md tells how many runs a narrow bound takes. Below 1 % a restart of the server alone makes a difference.
    """

    fail: float | None = Field(default=None, ge=0.01, le=0.9)
    warn: float | None = Field(default=None, ge=0.01, le=0.9)

    @model_validator(mode="after")
    def _ordered(self) -> Worse:
        if self.fail is None and self.warn is None:
            raise broken_rule("give at least one of fail, warn")
        if self.fail is not None and self.warn is not None and self.warn >= self.fail:
            raise broken_rule("a warning must come before the failure: make warn smaller than fail", "warn")
        return self


class Threshold(Strict):
    """Bounds on one metric. Crossing `min` or `max` fails; crossing `warn_min` or `warn_max` warns.

    `last_good`: against this host's last good release. `fleet`: against the median of the fleet's other hosts.
    """

    min: float | None = None
    max: float | None = None
    warn_min: float | None = None
    warn_max: float | None = None
    last_good: Worse | None = None
    fleet: Worse | None = None

    @model_validator(mode="after")
    def _bounded(self) -> Threshold:
        if not self.model_dump(exclude_none=True):
            raise broken_rule("give at least one of min, max, warn_min, warn_max, last_good, fleet")
        return self

    @model_validator(mode="after")
    def _ordered(self) -> Threshold:
        if self.min is not None and self.max is not None and self.min > self.max:
            raise broken_rule("no figure is at least min and at most max: make min smaller than max", "min")
        if self.min is not None and self.warn_min is not None and self.warn_min < self.min:
            raise broken_rule("what is below warn_min has failed by min already: make warn_min larger", "warn_min")
        if self.max is not None and self.warn_max is not None and self.warn_max > self.max:
            raise broken_rule("what is above warn_max has failed by max already: make warn_max smaller", "warn_max")
        return self


class Gate(Strict):
    """Workloads, and what is asked of them. `thresholds`: metric → bounds, by the names that the workloads give.

    `workload`: a llama-benchy matrix; `random` and `sharegpt`: by `vllm bench serve`; `answers`: a set of the catalog,
    or written out; `cold_start`: what the engine's start took. `most_runs`: how many runs there may be in all while a
    verdict is in doubt; four times a workload's own if not given. `max_age_days`: an older result is measured again.
    `time_budget_s`: how long all of it may take in all; the workloads' own limits together if not given. `source`:
    where a published figure comes from. `client`: where the client runs; from the controller, over an SSH tunnel, the
    network's share is in all figures, and `random` and `sharegpt` can not run.
    """

    workload: BenchyWorkload = BenchyWorkload()
    random: RandomWorkload | None = None
    sharegpt: ShareGptWorkload | None = None
    answers: AnswersChoice | None = None
    cold_start: bool = False
    thresholds: dict[str, Threshold] = Field(min_length=1)
    most_runs: int | None = Field(default=None, ge=2, le=200)
    max_age_days: float | None = Field(default=None, gt=0)
    time_budget_s: int | None = Field(default=None, ge=60)
    source: str | None = None
    client: Literal["host", "controller"] = "host"

    @property
    def run_bound(self) -> int:
        """`most_runs`, or its default, for llama-benchy."""
        return self.bound_of(self.workload.runs)

    def bound_of(self, runs: int) -> int:
        """How many runs there may be of a workload that has `runs` of its own."""
        return self.most_runs if self.most_runs is not None else 4 * runs

    def runs(self) -> Mapping[str, int]:
        """How many runs each workload that repeats makes at first, by its name."""
        found = {BENCHY: self.workload.runs}
        found |= {RANDOM: self.random.runs} if self.random is not None else {}
        return found | ({SHAREGPT: self.sharegpt.runs} if self.sharegpt is not None else {})

    def metrics(self) -> Mapping[str, str]:
        """Metric → the workload that measures it."""
        found = dict.fromkeys(self.workload.metrics(), BENCHY)
        found |= dict.fromkeys(self.random.metrics(), RANDOM) if self.random is not None else {}
        found |= dict.fromkeys(self.sharegpt.metrics(), SHAREGPT) if self.sharegpt is not None else {}
        return found | (dict.fromkeys(COLD_START_METRICS, COLD_START) if self.cold_start else {})

    def kinds(self) -> tuple[str, ...]:
        """The workloads that this gate has, in their order."""
        there = {*self.runs(), *([ANSWERS] if self.answers is not None else [])}
        return tuple(kind for kind in ORDER if kind in there or (kind == COLD_START and self.cold_start))

    @property
    def budget_s(self) -> int:
        """How long measuring may take in all, further runs included."""
        if self.time_budget_s is not None:
            return self.time_budget_s
        limits = [one.time_limit_s for one in (self.workload, self.random, self.sharegpt) if one is not None]
        return sum(limits) + OVERHEAD_S

    @model_validator(mode="after")
    def _bound_holds_the_runs(self) -> Gate:
        if self.most_runs is not None and self.most_runs < self.workload.runs:
            raise broken_rule(
                f"the workload alone makes {self.workload.runs} runs: give at least so many, or lower workload.runs",
                "most_runs",
            )
        return self

    @model_validator(mode="after")
    def _client_can_run_it(self) -> Gate:
        for kind in (RANDOM, SHAREGPT):
            if self.client == CONTROLLER and getattr(self, kind) is not None:
                raise broken_rule(
                    "runs inside the engine's image, so on the host: take it out, or set client to host", kind
                )
        return self

    @model_validator(mode="after")
    def _measured(self) -> Gate:
        produced, runs = self.metrics(), self.runs()
        for metric, threshold in self.thresholds.items():
            if metric not in produced:
                raise broken_rule(
                    f"the workload does not measure this: it measures {', '.join(produced)}",
                    "thresholds",
                    metric,
                )
            relative = threshold.last_good is not None or threshold.fleet is not None
            if relative and runs.get(produced[metric], 1) < 2:
                raise broken_rule(
                    f"{produced[metric]} makes one run, which has no spread to compare by: "
                    "give it runs of 2 or more, or a fixed bound (min, max, warn_min, warn_max)",
                    "thresholds",
                    metric,
                )
        return self
