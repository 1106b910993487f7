"""An engine's flags, in the words that a memory plan needs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from modules.memory.sizes import GIB
from modules.spec.engine import Engine, FlagValue

Flags = Mapping[str, FlagValue]
Family = Literal["vllm", "vllm-cpu", "sglang", "llama-cpp"]

# What vLLM does without the flag (0.32 on CUDA and on CPU); SGLang and llama.cpp have theirs in the functions below.
_VLLM_FRACTION, _VLLM_SEQUENCES, _VLLM_BATCH = 0.9, 256, 8192
_VLLM_BLOCK, _VLLM_CPU_BLOCK = 16, 128
_VLLM_CPU_KV_GIB = 4.0
CPU_CACHE_VARIABLE = "VLLM_CPU_KVCACHE_SPACE"


class UnplannableError(ValueError):
    """The flags, or the engine, say nothing from which memory could be reckoned; the text says why."""


@dataclass(frozen=True)
class Serving:
    """How a checkpoint is served.

    `context`: tokens of the longest sequence; None: the model's own limit. `sequences`: at most at once; None: as many
    as the cache holds. `batched`: tokens of one step. `fraction`: of the memory, for weights and cache (SGLang), or for
    all that vLLM takes. `kv_bytes`, `kv_tokens`: a cache of given size. `block`: tokens of a page. `graphs`: how many
    CUDA graphs are captured. `speculative`: tokens drafted ahead. `windows_bounded`: the cache of a sliding layer ends
    with its window. `assumed`: what the flags do not say.
    """

    family: Family
    context: int | None
    sequences: int | None
    batched: int
    kv_dtype: str = "auto"
    fraction: float | None = None
    kv_bytes: int | None = None
    kv_tokens: int | None = None
    block: int = 1
    graphs: int = 0
    speculative: int = 0
    windows_bounded: bool = True
    assumed: tuple[str, ...] = ()


def family_of(engine: Engine) -> Family:
    """Which engine's rules hold, by what the command starts. Raises `UnplannableError`: one that we do not know."""
    command = " ".join(engine.command)
    if "sglang" in command:
        return "sglang"
    if "llama-server" in command:
        return "llama-cpp"
    if "vllm" in command:
        return "vllm" if engine.container.gpus else "vllm-cpu"
    raise UnplannableError(f"no memory rules for an engine that is started by `{' '.join(engine.command[:3])}`")


@dataclass(frozen=True)
class Settings:
    """A service's engine with its merged flags, and the variables that it gets."""

    engine: Engine
    flags: Flags
    environment: Mapping[str, str]


def serving_of(settings: Settings) -> Serving:
    """What the settings mean. Raises `UnplannableError`: an engine or a value that we do not know."""
    family = family_of(settings.engine)
    if family == "sglang":
        return _sglang(settings.flags)
    if family == "llama-cpp":
        return _llama(settings.flags)
    return _vllm(family, settings.flags, settings.environment)


def _vllm(family: Family, flags: Flags, environment: Mapping[str, str]) -> Serving:
    sequences = _whole(flags, "max-num-seqs") or _VLLM_SEQUENCES
    fraction, kv_bytes = _real(flags, "gpu-memory-utilization"), _whole(flags, "kv-cache-memory-bytes")
    speculative = int(_document(flags, "speculative-config").get("num_speculative_tokens") or 0)
    assumed = []
    if family == "vllm-cpu":
        fraction = None
        kv_bytes = kv_bytes or round(float(environment.get(CPU_CACHE_VARIABLE) or _VLLM_CPU_KV_GIB) * GIB)
    elif kv_bytes is not None:
        fraction = None
    elif fraction is None:
        fraction = _VLLM_FRACTION
        assumed.append(f"no gpu-memory-utilization: vLLM takes {_VLLM_FRACTION}")
    return Serving(
        family,
        context=_whole(flags, "max-model-len"),
        sequences=sequences,
        batched=_whole(flags, "max-num-batched-tokens") or _VLLM_BATCH,
        kv_dtype=_text(flags, "kv-cache-dtype") or "auto",
        fraction=fraction,
        kv_bytes=kv_bytes,
        block=_whole(flags, "block-size") or (_VLLM_CPU_BLOCK if family == "vllm-cpu" else _VLLM_BLOCK),
        graphs=0 if family == "vllm-cpu" else _vllm_graphs(flags, sequences * (1 + speculative)),
        speculative=speculative,
        windows_bounded=flags.get("disable-hybrid-kv-cache-manager") is not True,
        assumed=tuple(assumed),
    )


def _vllm_graphs(flags: Flags, decoded: int) -> int:
    """Sizes 1, 2, 4, every 8th to 256 and every 16th above, once in pieces, and once whole up to `decoded` tokens."""
    compilation = _document(flags, "compilation-config")
    if flags.get("enforce-eager") is True or str(compilation.get("cudagraph_mode", "")).upper() == "NONE":
        return 0
    sizes = flags.get("cudagraph-capture-sizes") or compilation.get("cudagraph_capture_sizes")
    if not isinstance(sizes, tuple | list):
        largest = _whole(flags, "max-cudagraph-capture-size") or min(2 * decoded, 512)
        sizes = [size for size in (1, 2, 4, *range(8, 257, 8), *range(272, largest + 1, 16)) if size <= largest]
    return len(sizes) + sum(int(size) <= decoded for size in sizes)


def _sglang(flags: Flags) -> Serving:
    fraction, assumed = _real(flags, "mem-fraction-static"), []
    if fraction is None:
        fraction = 0.88
        assumed.append("no mem-fraction-static: SGLang chooses one, here 0.88 is assumed")
    sequences = _whole(flags, "max-running-requests")
    largest = _whole(flags, "cuda-graph-max-bs") or 256
    # By its log, SGLang captures 1, 2, 4, 8, 12, and every 8th from 16 on: 36 sizes up to 256.
    sizes = sum(size <= largest for size in (1, 2, *range(4, 13, 4), *range(16, 513, 8)))
    return Serving(
        "sglang",
        context=_whole(flags, "context-length"),
        sequences=sequences,
        batched=_whole(flags, "chunked-prefill-size") or 8192,
        kv_dtype=_text(flags, "kv-cache-dtype") or "auto",
        fraction=fraction,
        kv_tokens=_whole(flags, "max-total-tokens"),
        graphs=0 if flags.get("disable-cuda-graph") is True else sizes,
        speculative=_whole(flags, "speculative-num-draft-tokens") or 0,
        # Its pool gives every layer the same tokens: baseline C's 73,728 bytes are of all 36 layers of gpt-oss-120b.
        windows_bounded=False,
        assumed=tuple(assumed),
    )


def _llama(flags: Flags) -> Serving:
    return Serving(
        "llama-cpp",
        context=_whole(flags, "ctx-size"),
        sequences=_whole(flags, "parallel") or 4,
        batched=_whole(flags, "ubatch-size") or 512,
        kv_dtype=_text(flags, "cache-type-k") or "f16",
        windows_bounded=flags.get("swa-full") is not True,
    )


def _value(flags: Flags, name: str) -> FlagValue | None:
    value = flags.get(name, flags.get(name.replace("-", "_")))
    return None if isinstance(value, bool) else value


def _whole(flags: Flags, name: str) -> int | None:
    value = _value(flags, name)
    if value is None:
        return None
    try:
        return int(str(value))
    except ValueError:
        return _suffixed(name, str(value))


def _suffixed(name: str, value: str) -> int:
    """Sizes as vLLM takes them: `128k` for 128,000 and `128K` for 131,072."""
    factor = {"k": 10**3, "K": 2**10, "m": 10**6, "M": 2**20, "g": 10**9, "G": 2**30}.get(value[-1:])
    try:
        return round(float(value[:-1]) * (factor or 0)) if factor else int(value)
    except ValueError:
        raise UnplannableError(f"{name}: {value!r} is no number") from None


def _real(flags: Flags, name: str) -> float | None:
    value = _value(flags, name)
    try:
        return None if value is None else float(str(value))
    except ValueError:
        raise UnplannableError(f"{name}: {value!r} is no number") from None


def _text(flags: Flags, name: str) -> str | None:
    value = _value(flags, name)
    return None if value is None else str(value)


def _document(flags: Flags, name: str) -> dict[str, Any]:
    """A flag that holds JSON, with the keys that flags of their own give; what is no JSON is left to the engine."""
    parts = {flag.partition(".")[2]: value for flag, value in flags.items() if flag.startswith(f"{name}.")}
    try:
        found = json.loads(_text(flags, name) or "{}")
    except ValueError:
        return {}
    return found | parts if isinstance(found, dict) else {}
