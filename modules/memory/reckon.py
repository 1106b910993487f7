"""From a checkpoint, flags and a machine to the memory plan."""

from __future__ import annotations

from dataclasses import replace

from modules.memory import estimate
from modules.memory.cache import capacity, llama_cache, token_bytes
from modules.memory.checkpoint import Checkpoint
from modules.memory.plan import NEIGHBOURS, RESERVE, Machine, Measured, MemoryPlan, Part, Problem
from modules.memory.serving import Serving, UnplannableError
from modules.memory.sizes import GIB, gib, kv_bits

# CUDA counts as free what MemAvailable says, less about this (mARTin-B78's launch script).
_CUDA_SEES_LESS = 5 * GIB


def plan_memory(
    checkpoint: Checkpoint, serving: Serving, machine: Machine, measured: Measured | None = None
) -> MemoryPlan:
    """The plan. Raises `UnplannableError` where neither flags nor config tell the length of a sequence."""
    known = measured or Measured()
    context = serving.context or checkpoint.shape.context
    if not context:
        raise UnplannableError("neither the flags nor the config say how long a sequence may be: set max-model-len")
    weights = _part("weights", known.weights, estimate.weights(checkpoint, serving.family), _weights_note(checkpoint))
    graphs = _part("CUDA graphs", known.graphs, estimate.graphs(serving), f"{serving.graphs} captured")
    workspace = _part("workspace", known.workspace, estimate.workspace(checkpoint, serving))
    processes = Part("engine's processes", estimate.processes(serving.family), "estimated")
    beside = weights.size + (workspace.size if serving.family == "vllm" else 0)
    cache, short = _cache(checkpoint, serving, context, machine, beside)
    others = (
        workspace,
        processes,
        *((Part(NEIGHBOURS, machine.neighbours, "set"),) if machine.neighbours else ()),
        Part(RESERVE, machine.reserve, "set"),
    )
    held = capacity(checkpoint.layers, serving, context, cache.size) if checkpoint.layers else None
    own = weights.size + cache.size + graphs.size + workspace.size + processes.size
    plan = MemoryPlan(
        weights=weights,
        cache=cache,
        graphs=graphs,
        others=others,
        memory=machine.memory,
        context=context,
        capacity=held,
        start_needs=max(own, _asked_at_start(serving, machine)),
        problems=(),
        remarks=_remarks(checkpoint, serving, cache),
    )
    return _judged(plan, serving, short)


def _cache(checkpoint: Checkpoint, serving: Serving, context: int, machine: Machine, beside: int) -> tuple[Part, int]:
    """The cache, and how much its share lacks of what stands `beside` the cache in it."""
    if not checkpoint.layers and (serving.kv_tokens is not None or serving.family == "llama-cpp"):
        return Part("KV cache", 0, "unknown"), 0
    if serving.kv_tokens is not None:
        return Part("KV cache", serving.kv_tokens * token_bytes(checkpoint.layers, serving), "set"), 0
    if serving.kv_bytes is not None:
        return Part("KV cache", serving.kv_bytes, "set"), 0
    if serving.family == "llama-cpp":
        return Part("KV cache", llama_cache(checkpoint.layers, serving, context), "read"), 0
    if serving.family == "sglang":
        # A fraction of what is free before the weights are loaded, for weights and cache alone.
        free = machine.memory - machine.reserve - machine.neighbours - estimate.processes(serving.family)
        left = round((serving.fraction or 0) * free) - beside
    else:
        # A fraction of all memory, for everything but graphs, which versions before 0.21 take on top.
        left = round((serving.fraction or 0) * machine.memory) - beside
    return Part("KV cache", max(0, left), "remainder"), max(0, -left)


def _judged(plan: MemoryPlan, serving: Serving, short: int) -> MemoryPlan:
    problems = []
    held, share = plan.capacity, "" if serving.fraction is None else f"a fraction of {serving.fraction:g} "
    if plan.left < 0:
        sums = f"the parts need {gib(plan.total)}, the machine has {gib(plan.memory)}"
        problems.append(Problem("machine", f"{sums}: {gib(-plan.left)} short"))
    if short:
        text = f"{share}leaves nothing for the KV cache beside weights and workspace: {gib(short)} short"
        problems.append(Problem("no cache", text))
    elif held is not None and held.sequences < 1:
        wanted = f"one sequence of {plan.context:,} tokens needs {gib(held.sequence)} of KV cache"
        problems.append(Problem("context", f"{wanted}, there are {gib(plan.cache.size)}"))
    return replace(plan, problems=tuple(problems))


def _asked_at_start(serving: Serving, machine: Machine) -> int:
    """Free memory that vLLM demands before it loads anything."""
    if serving.family != "vllm" or serving.fraction is None:
        return 0
    return round(serving.fraction * machine.memory) + _CUDA_SEES_LESS


def _part(name: str, measured: int | None, estimated: int, note: str = "") -> Part:
    if measured is not None:
        return Part(name, measured, "measured", note)
    return Part(name, estimated, "estimated", note)


def _weights_note(checkpoint: Checkpoint) -> str:
    kinds = sorted(checkpoint.tensors, key=lambda kind: -checkpoint.tensors[kind])
    shown = ", ".join(f"{gib(checkpoint.tensors[kind])} {kind}" for kind in kinds[:4])
    return f"in the files: {shown}"


def _remarks(checkpoint: Checkpoint, serving: Serving, cache: Part) -> tuple[str, ...]:
    found = list(serving.assumed)
    if cache.source == "unknown":
        found.append(f"the KV cache is not in this sum, its size is unknown: {checkpoint.unknown}")
    elif checkpoint.unknown is not None:
        found.append(f"how many sequences the cache holds is unknown: {checkpoint.unknown}")
    if kv_bits(serving.kv_dtype) is None:
        found.append(f"kv-cache-dtype {serving.kv_dtype}: size unknown to us, reckoned with 16 bits")
    return tuple(found)
