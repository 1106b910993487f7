"""Check what a service's gate asks for against what its engine and its profile can give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from modules.fleet.compose import composed_flags
from modules.fleet.problem import Key
from modules.spec.engine import Engine, FlagValue
from modules.spec.gate import Gate
from modules.spec.model import Model
from modules.spec.settings import OWN_PROFILE, Service

# How the engines call the number of requests that are worked on at once; what is beyond it waits.
_STREAMS = ("max-num-seqs", "max-running-requests", "parallel")


def gate_rules(service: Service, gate: Gate, engine: Engine, model: Model | None) -> Iterator[tuple[Key, str, str]]:
    """Tell key, what is wrong and what to do; keys are below the service. `model`: None where its name is unknown."""
    named = isinstance(service.gate, str)
    has_client = engine.command[:1] == ("vllm",)
    if not has_client:
        for kind in ("random", "sharegpt"):
            if getattr(gate, kind) is not None:
                what = f"engine {service.engine} has no `vllm bench serve` in its image, by which {kind} is measured"
                key = ("gate",) if named else ("gate", kind)
                yield key, what, "use a gate without it; the llama-benchy matrix works with every engine"
    if model is None or service.profile not in {*engine.profiles, OWN_PROFILE}:
        return
    if model.task != "generate":
        what = f"a gate measures generated text, and {model.repository} generates none (task: {model.task})"
        yield ("gate",), what, "take the gate out"
        return
    flag, most = _limit(composed_flags(engine, service, model))
    for kind, streams in _streams(gate).items():
        if most is not None and streams > most and (kind == "workload" or has_client):
            what = (
                f"{f'gate {service.gate}' if named else 'this'} wants {streams} streams at once, and the service works "
                f"on {most} ({flag}, profile {service.profile}): what waits for its turn is no measurement"
            )
            yield ("gate",) if named else ("gate", kind, "concurrency"), what, _remedy(engine, service, flag, streams)


def _streams(gate: Gate) -> Mapping[str, int]:
    """Workload → its streams. A replay is of users who may have to wait, and random prompts may come at a rate."""
    found = {"workload": max(gate.workload.concurrency)}
    held_up = gate.random is not None and gate.random.rate is None
    # As many as there are prompts at most.
    return found | ({"random": min(gate.random.concurrency, gate.random.prompts)} if gate.random and held_up else {})


def _limit(flags: Mapping[str, FlagValue]) -> tuple[str, int | None]:
    """The flag that limits the streams, and to how many; None where the engine's own default is in force."""
    name = next((name for name in _STREAMS if name in flags), "")
    value = flags.get(name)
    number = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    return name, int(number) if number.isdecimal() else None


def _remedy(engine: Engine, service: Service, flag: str, streams: int) -> str:
    enough = [
        name
        for name, flags in engine.profiles.items()
        if flag not in service.flags and (_limit({**engine.flags, **flags})[1] or 0) >= streams
    ]
    other = f"use profile {' or '.join(enough)}, " if enough else ""
    return f"{other}set flags.{flag} to {streams} or more, or take a gate of fewer streams"
