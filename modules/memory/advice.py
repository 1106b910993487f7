"""The nearest settings with which a plan that can not be would be one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product

from modules.memory.checkpoint import Checkpoint
from modules.memory.plan import Machine, Measured, MemoryPlan
from modules.memory.reckon import plan_memory
from modules.memory.serving import CPU_CACHE_VARIABLE, Family, Serving, Settings, serving_of
from modules.memory.sizes import GIB, kv_bits
from modules.spec.engine import FlagValue

# Who can live with less sets it by hand.
_SHORTEST = 2048
_FRACTIONS = [round(0.05 + 0.01 * step, 2) for step in range(91)]

_FRACTION = {"vllm": "gpu-memory-utilization", "sglang": "mem-fraction-static"}
_CONTEXT = {"vllm": "max-model-len", "vllm-cpu": "max-model-len", "sglang": "context-length", "llama-cpp": "ctx-size"}
_SEQUENCES = {"vllm": "max-num-seqs", "vllm-cpu": "max-num-seqs", "llama-cpp": "parallel"}
_SMALL_TYPES: dict[Family, dict[str, FlagValue]] = {
    "vllm": {"kv-cache-dtype": "fp8"},
    "sglang": {"kv-cache-dtype": "fp8_e4m3"},
    "llama-cpp": {"cache-type-k": "q8_0", "cache-type-v": "q8_0"},
}


@dataclass(frozen=True)
class Change:
    """Flags to set, and variables of the engine's environment."""

    flags: Mapping[str, FlagValue] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)

    def and_then(self, other: Change) -> Change:
        """Both changes."""
        return Change({**self.flags, **other.flags}, {**self.environment, **other.environment})

    def to(self, settings: Settings) -> Settings:
        """The settings after the change."""
        flags = {**settings.flags, **self.flags}
        return Settings(settings.engine, flags, {**settings.environment, **self.environment})

    def __str__(self) -> str:
        return ", ".join(f"{name}: {value}" for name, value in {**self.flags, **self.environment}.items())


@dataclass(frozen=True)
class Suggestion:
    """A change that makes the service fit, and the plan that says so."""

    change: Change
    plan: MemoryPlan


def nearest(
    checkpoint: Checkpoint,
    settings: Settings,
    machine: Machine,
    measured: Measured | None = None,
) -> tuple[Suggestion, ...]:
    """What would do, with as few settings as possible, each moved as little as possible; () where nothing would.

    Every suggestion was planned anew from its flags and fits. A value that was `measured` under other flags stays.
    """

    def planned(change: Change) -> MemoryPlan:
        return plan_memory(checkpoint, serving_of(change.to(settings)), machine, measured)

    serving = serving_of(settings)
    levers = [steps for steps in _levers(serving, planned(Change()).context) if steps]
    for count in range(1, len(levers) + 1):
        found = [
            suggestion
            for chosen in combinations(levers, count)
            if (suggestion := _first_that_fits(chosen, planned)) is not None
        ]
        if found:
            return tuple(found)
    return ()


def _first_that_fits(levers: Sequence[list[Change]], planned: Callable[[Change], MemoryPlan]) -> Suggestion | None:
    for change in _by_distance(levers):
        plan = planned(change)
        if plan.fits:
            return Suggestion(change, plan)
    return None


def _by_distance(levers: Sequence[list[Change]]) -> Iterator[Change]:
    """Every combination of one step of each lever, those first that move little."""
    steps = product(*(range(len(lever)) for lever in levers))
    ranked = sorted(steps, key=lambda taken: sum(at / len(lever) for at, lever in zip(taken, levers, strict=True)))
    for taken in ranked:
        change = Change()
        for at, lever in zip(taken, levers, strict=True):
            change = change.and_then(lever[at])
        yield change


def _levers(serving: Serving, context: int) -> Iterator[list[Change]]:
    """For each setting the values that may help, nearest to what it is first."""
    family = serving.family
    if serving.sequences is not None and family in _SEQUENCES:
        yield [Change({_SEQUENCES[family]: fewer}) for fewer in _halved(serving.sequences, 1)]
    if family in _SMALL_TYPES and (kv_bits(serving.kv_dtype) or 0) > 8.5:
        yield [Change(_SMALL_TYPES[family])]
    yield [Change({_CONTEXT[family]: shorter}) for shorter in _halved(context, _SHORTEST)]
    if serving.fraction is not None:
        now = serving.fraction
        others = sorted((other for other in _FRACTIONS if other != now), key=lambda other: abs(other - now))
        yield [Change({_FRACTION[family]: other}) for other in others]
    if family == "vllm-cpu" and serving.kv_bytes is not None:
        now = serving.kv_bytes / GIB
        spaces = sorted((space for space in range(1, 65) if space != now), key=lambda space: abs(space - now))
        yield [Change({}, {CPU_CACHE_VARIABLE: str(space)}) for space in spaces]


def _halved(value: int, least: int) -> list[int]:
    """Powers of two below a value."""
    powers = (1 << bits for bits in range(value.bit_length() - 1, -1, -1))
    return [power for power in powers if least <= power < value]
