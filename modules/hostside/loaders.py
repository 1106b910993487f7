"""The ways to get tensors from files to a device, as engines take them, by the packages of the engine's image."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

_MIB = 1024


@dataclass(frozen=True)
class Way:
    """How tensors get to the device. `loader`: a function here; `options` for it; `environment` of its process."""

    loader: str
    options: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)


_BOUNCE = {"FASTSAFETENSORS_UNIFIED_MEM": "0"}
_UNIFIED = {"FASTSAFETENSORS_UNIFIED_MEM": "1"}
# `safetensors-copy` is what vLLM does by default, `fastsafetensors` and `-gds` what it does with that load format and
# VLLM_FASTSAFETENSORS_NOGDS 1 or 0; fastsafetensors takes the unified way by itself on a GB10.
WAYS = {
    "safetensors-copy": Way("safetensors_copy"),
    "safetensors-device": Way("safetensors_device"),
    "fastsafetensors": Way("fast", {"nogds": True}, {}),
    "fastsafetensors-gds": Way("fast", {"nogds": False}, {}),
    "fastsafetensors-buffered": Way("fast", {"nogds": True}, {"FASTSAFETENSORS_ODIRECT": "0"}),
    "fastsafetensors-bounce": Way("fast", {"nogds": True}, _BOUNCE),
    "fastsafetensors-bounce-4-threads": Way("fast", {"nogds": True, "max_threads": 4}, _BOUNCE),
    "fastsafetensors-bounce-32-threads": Way("fast", {"nogds": True, "max_threads": 32}, _BOUNCE),
    "fastsafetensors-bounce-64-mib": Way("fast", {"nogds": True, "bbuf_size_kb": 64 * _MIB}, _BOUNCE),
    "fastsafetensors-unified": Way("fast", {"nogds": True}, _UNIFIED),
    "fastsafetensors-unified-mapped": Way(
        "fast", {"nogds": True}, {**_UNIFIED, "FASTSAFETENSORS_DMA_THREADS": "0", "FASTSAFETENSORS_ODIRECT": "0"}
    ),
}


def safetensors_copy(path: str, device: str) -> int:
    """Map the file, and copy each tensor."""
    from safetensors import safe_open

    done = 0
    with safe_open(path, framework="pt", device="cpu") as file:
        for name in file.keys():  # noqa: SIM118, it is no mapping
            mapped = file.get_tensor(name)
            # Where the device is the CPU, `to` would give the mapping itself back, unread.
            tensor = mapped.clone() if device == "cpu" else mapped.to(device)
            done += tensor.nbytes
    return done


def safetensors_device(path: str, device: str) -> int:
    """Have safetensors itself put each tensor on the device."""
    from safetensors import safe_open

    done = 0
    with safe_open(path, framework="pt", device=device) as file:
        for name in file.keys():  # noqa: SIM118, it is no mapping
            tensor = file.get_tensor(name)
            # On the CPU these are mapped and not read before somebody looks.
            done += tensor.clone().nbytes if device == "cpu" else tensor.nbytes
    return done


def fast(path: str, device: str, **options: Any) -> int:
    """By fastsafetensors, a file at a time, as vLLM does it."""
    from fastsafetensors import SafeTensorsFileLoader

    loader = SafeTensorsFileLoader(None, device, **options)
    try:
        loader.add_filenames({0: [path]})
        buffers = loader.copy_files_to_device()
        try:
            return sum(buffers.get_tensor(name).nbytes for name in loader.get_keys())
        finally:
            buffers.close()
    finally:
        loader.close()


LOADERS: dict[str, Callable[..., int]] = {each.__name__: each for each in (safetensors_copy, safetensors_device, fast)}


def timed(way: Way, files: Sequence[str], device: str, synchronize: Callable[[], None]) -> float:
    """Bytes per second over all files."""
    done, spent = 0, 0.0
    for path in files:
        began = time.perf_counter()
        done += LOADERS[way.loader](path, device, **way.options)
        synchronize()
        spent += time.perf_counter() - began
        gc.collect()
    return done / spent
