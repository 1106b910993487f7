"""A gate's workloads as they are shared: all that is measured, and nothing of where a file lies."""

from __future__ import annotations

import shlex
from pathlib import PurePath
from typing import Any, Literal

from pydantic import Field

from modules.fleet.files import DATASETS
from modules.gating.command import workload_command
from modules.spec.base import Strict
from modules.spec.gate import AnswersChoice, Gate
from modules.spec.workload import BenchyWorkload, RandomWorkload, ServeWorkload, ShareGptWorkload


class SharedWorkloads(Strict):
    """As `modules.spec.gate.Gate` has them. A dataset of the owner's own is only known by its hash."""

    workload: BenchyWorkload
    random: RandomWorkload | None = None
    sharegpt: ShareGptWorkload | None = None
    answers: AnswersChoice | None = None
    cold_start: bool = False
    client: Literal["host", "controller"] = "host"
    commands: tuple[str, ...] = Field(default=(), description="as one would type them")


def workloads_of(gate: Gate, repository: str, served_as: str) -> SharedWorkloads:
    """What a gate measures of a model."""
    sharegpt = gate.sharegpt
    if sharegpt is not None:
        own = not PurePath(sharegpt.dataset.file).is_relative_to(DATASETS)
        name = "dataset.json" if own else PurePath(sharegpt.dataset.file).name
        dataset = sharegpt.dataset.model_copy(update={"file": name})
        sharegpt = sharegpt.model_copy(update={"dataset": dataset})
    commands = [workload_command(gate.workload, repository, served_as, gate.client)]
    commands += [_serve_command(one, repository, served_as) for one in (gate.random, sharegpt) if one is not None]
    return SharedWorkloads(
        workload=gate.workload,
        random=gate.random,
        sharegpt=sharegpt,
        answers=gate.answers,
        cold_start=gate.cold_start,
        client=gate.client,
        commands=tuple(commands),
    )


def fleet_document(shared: SharedWorkloads) -> dict[str, Any]:
    """As a fleet file's gate writes them: what is not a default, and the matrix in any case."""
    document = shared.model_dump(mode="json", exclude_defaults=True, exclude={"commands"})
    return {**document, "workload": shared.workload.model_dump(mode="json", exclude_defaults=True)}


def _serve_command(workload: ServeWorkload, repository: str, served_as: str) -> str:
    words = ["vllm", "bench", "serve", "--model", repository, "--served-model-name", served_as]
    words += ["--num-prompts", str(workload.prompts), "--max-concurrency", str(workload.concurrency)]
    words += ["--request-rate", f"{workload.rate:g}"] if workload.rate is not None else []
    if isinstance(workload, RandomWorkload):
        words += ["--endpoint", "/v1/completions", "--dataset-name", "random", "--ignore-eos"]
        words += ["--random-input-len", str(workload.input), "--random-output-len", str(workload.output)]
    if isinstance(workload, ShareGptWorkload):
        words += ["--backend", "openai-chat", "--endpoint", "/v1/chat/completions", "--dataset-name", "sharegpt"]
        words += ["--dataset-path", workload.dataset.file]
        words += ["--sharegpt-output-len", str(workload.output)] if workload.output is not None else []
    return shlex.join(words)
