"""Gates: workloads with thresholds that a release must pass before it counts as good."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from modules.spec.base import Strict, broken_rule


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


class BenchyWorkload(Strict):
    """A `llama-benchy` matrix. Prompt, generated and context sizes in tokens; `runs` measured after one warm-up.

    Its metrics, all means over the runs: `tg<T>@pp<P>` decode and `pp<P>` prefill, in tokens/s summed over the
    streams; `ttfr@pp<P>` time to the first answer in ms. A context depth other than 0 adds ` d<D>`; ` c<C>` (streams)
    always ends the name: `tg128@pp2048 c1`, `pp2048 d4096 c1`. Where a prompt size is run with several generated
    sizes, its prefill is the lowest of theirs and its time the highest.

    `latency_mode`: what is taken off the time of a prompt, because it is not the prompt's: the time of a reply of one
    token (`generation`), of a request that generates nothing (`api`), or nothing (`none`). Where a prompt takes no
    longer than that, its speed can not be measured.

    `coherence`: the model must first answer a question of fact; false only for models that can not (the lab's).
    """

    pp: tuple[int, ...] = Field(default=(2048,), min_length=1)
    tg: tuple[int, ...] = Field(default=(128,), min_length=1)
    depth: tuple[int, ...] = Field(default=(0,), min_length=1)
    concurrency: tuple[int, ...] = Field(default=(1,), min_length=1)
    runs: int = Field(default=3, ge=2, le=50)
    time_limit_s: int = Field(default=1800, ge=10)
    latency_mode: Literal["generation", "api", "none"] = "generation"
    coherence: bool = True

    def metrics(self) -> tuple[str, ...]:
        """Name every metric that this workload produces."""
        names: list[str] = []
        for depth in self.depth:
            for concurrency in self.concurrency:
                cell = f"{f' d{depth}' if depth else ''} c{concurrency}"
                for pp in self.pp:
                    names += [f"pp{pp}{cell}", f"ttfr@pp{pp}{cell}"]
                    names += [f"tg{tg}@pp{pp}{cell}" for tg in self.tg]
        return tuple(names)


class Gate(Strict):
    """`thresholds`: metric → bounds, e.g. `tg128@pp2048 c1` (tokens/s, decode), `pp2048 c1` (tokens/s, prefill).

    `most_runs`: how many runs there may be in all while a verdict is in doubt; four times the workload's own if not
    given. `source`: where a published figure comes from.
    """

    workload: BenchyWorkload = BenchyWorkload()
    thresholds: dict[str, Threshold] = Field(min_length=1)
    most_runs: int | None = Field(default=None, ge=2, le=200)
    source: str | None = None

    @property
    def run_bound(self) -> int:
        """`most_runs`, or its default."""
        return self.most_runs if self.most_runs is not None else 4 * self.workload.runs

    @model_validator(mode="after")
    def _bound_holds_the_runs(self) -> Gate:
        if self.most_runs is not None and self.most_runs < self.workload.runs:
            raise broken_rule(
                f"the workload alone makes {self.workload.runs} runs: give at least so many, or lower workload.runs",
                "most_runs",
            )
        return self

    @model_validator(mode="after")
    def _measured(self) -> Gate:
        produced = self.workload.metrics()
        for metric in self.thresholds:
            if metric not in produced:
                raise broken_rule(
                    f"the workload does not measure this: it measures {', '.join(produced)}",
                    "thresholds",
                    metric,
                )
        return self
