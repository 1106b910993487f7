"""Workloads of a gate, each with the names of the metrics that it brings."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from modules.spec.base import Sha256, Strict, broken_rule

# A stream that has begun and then says nothing for so long stands still. At 1024 streams others' prompts alone cause
# pauses of 15 s (baseline vllm-mxfp4-many-chunks, p99 of itl), so such a workload sets more.
PAUSE_S = 15.0


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
    `longest_pause_s`: a stream that stands still for longer fails the gate.
    """

    pp: tuple[int, ...] = Field(default=(2048,), min_length=1)
    tg: tuple[int, ...] = Field(default=(128,), min_length=1)
    depth: tuple[int, ...] = Field(default=(0,), min_length=1)
    concurrency: tuple[int, ...] = Field(default=(1,), min_length=1)
    runs: int = Field(default=3, ge=2, le=50)
    time_limit_s: int = Field(default=1800, ge=10)
    latency_mode: Literal["generation", "api", "none"] = "generation"
    coherence: bool = True
    longest_pause_s: float = Field(default=PAUSE_S, gt=0)

    @model_validator(mode="after")
    def _can_be_run(self) -> BenchyWorkload:
        # Not by the items' own type: pydantic then also calls a list empty whose items are all refused.
        for name, least in (("pp", 1), ("tg", 1), ("depth", 0), ("concurrency", 1)):
            if min(getattr(self, name)) < least:
                raise broken_rule(f"out of range: each must be at least {least}", name)
        return self

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


# What `vllm bench serve` tells of a run: as named here → its figure (modules/gating/serving.py).
SERVE_METRICS = (
    "request throughput",
    "output throughput",
    "total throughput",
    *(f"{row} {kind}" for kind in ("ttft", "tpot", "itl") for row in ("mean", "median", "p99")),
)


class ServeWorkload(Strict):
    """What all workloads of `vllm bench serve` have in common; it runs in the engine's own container.

    `prompts`: so many at most in a run. `concurrency`: requests under way at once. `rate`: requests begun a second;
    without it as fast as `concurrency` allows. `runs`: with one there is no spread, and only fixed bounds can be set.
    """

    prompts: int = Field(default=64, ge=1, le=100_000)
    concurrency: int = Field(default=16, ge=1, le=4096)
    rate: float | None = Field(default=None, gt=0)
    runs: int = Field(default=1, ge=1, le=20)
    time_limit_s: int = Field(default=1800, ge=10)
    longest_pause_s: float = Field(default=PAUSE_S, gt=0)


class RandomWorkload(ServeWorkload):
    """Random prompts of `input` tokens, each answered by exactly `output` tokens, over `/v1/completions`.

    Its metrics are named `random output throughput`, `random median ttft` and so on.
    """

    input: int = Field(default=1024, ge=1)
    output: int = Field(default=128, ge=2)

    def metrics(self) -> tuple[str, ...]:
        """Name every metric that this workload produces."""
        return tuple(f"random {name}" for name in SERVE_METRICS)


class Dataset(Strict):
    """A file in ShareGPT's form (docs/gates.md). It goes from the controller to hosts, which check its hash.

    `file`: relative to the fleet file, or one of those that ship with Tinderbox (modules/catalog/datasets).
    """

    file: str = Field(min_length=1)
    sha256: Sha256


class ShareGptWorkload(ServeWorkload):
    """Conversations' first questions, replayed as chats.

    `time_cap_s`: no request begins later; those under way are let finish, and the result says `hit_time_cap`.
    `output`: so many tokens at most in each answer; without it as many as the conversation's own has.
    Its metrics are named `sharegpt output throughput`, `sharegpt median ttft` and so on.
    """

    dataset: Dataset
    prompts: int = Field(default=1000, ge=1, le=100_000)
    concurrency: int = Field(default=32, ge=1, le=4096)
    time_cap_s: int = Field(default=900, ge=1)
    output: int | None = Field(default=256, ge=2)

    def metrics(self) -> tuple[str, ...]:
        """Name every metric that this workload produces."""
        return tuple(f"sharegpt {name}" for name in SERVE_METRICS)


# Seconds from the launch of the engine's unit to its being ready, and what they were spent on.
COLD_START_METRICS = (
    "cold start launch to ready",
    "cold start weights loading",
    "cold start kv cache",
    "cold start graph capture",
)
