"""What no file of a checkpoint tells: what weights grow by when they are loaded, graphs, buffers, processes.

Figures are of starts that others logged on a GB10, rounded up; `docs/memory.md` lists them. A start of our own that was
measured beats them (`modules.memory.plan.Measured`).
"""

from __future__ import annotations

from modules.memory.checkpoint import Checkpoint
from modules.memory.serving import Family, Serving
from modules.memory.sizes import GIB, MIB

# SGLang loads gpt-oss-120b's 60.8 GiB as 66.4: MXFP4 experts are padded for the kernels (baseline C). Unpadded formats
# grew by 0.3 to 0.9 % in three logs of vLLM.
_PADDED_GROWTH, _GROWTH = 1.093, 1.01
# Per graph: 20 to 31 MiB in four logs of vLLM, 97 MiB in SGLang's of gpt-oss-120b (3.4 GiB for 36).
_GRAPH = {"vllm": 32 * MIB, "vllm-cpu": 0, "sglang": 100 * MIB, "llama-cpp": 0}
# CUDA context, kernels' own workspaces, what profiling adds: 2.3 to 3.7 GiB in logs of vLLM, 6.6 GiB with an encoder.
_BASE = {"vllm": 3.5 * GIB, "vllm-cpu": 0.5 * GIB, "sglang": 2.0 * GIB, "llama-cpp": 1.0 * GIB}
_ENCODER = 3.0 * GIB
# Python, torch and the API server in host memory.
_PROCESSES = {"vllm": 3.0 * GIB, "vllm-cpu": 2.5 * GIB, "sglang": 3.0 * GIB, "llama-cpp": 0.5 * GIB}


def weights(checkpoint: Checkpoint, family: Family) -> int:
    """Bytes of the loaded weights."""
    padded = checkpoint.quantization == "mxfp4" and family in {"vllm", "sglang"}
    growth = _PADDED_GROWTH if padded else 1.0 if family == "llama-cpp" else _GROWTH
    return round(checkpoint.size * growth)


def graphs(serving: Serving) -> int:
    """Bytes of captured CUDA graphs."""
    return serving.graphs * _GRAPH[serving.family]


def workspace(checkpoint: Checkpoint, serving: Serving) -> int:
    """Bytes of activations of the largest step, of the logits that are sampled from, and of what is always there."""
    shape = checkpoint.shape
    # Residual, normalized, Q, K, V and attention's output stand beside each other, as do gate, up and their product.
    activations = serving.batched * 2 * (8 * shape.hidden + 3 * shape.feed_forward)
    # Logits in 32 bits, sorted and as probabilities.
    logits = min(serving.sequences or 0, serving.batched) * shape.vocabulary * 4 * 3
    encoder = _ENCODER if checkpoint.multimodal and serving.family in {"vllm", "sglang"} else 0
    return round(_BASE[serving.family] + encoder + activations + logits)


def processes(family: Family) -> int:
    """Bytes of the engine's processes in host memory, without what is counted elsewhere."""
    return round(_PROCESSES[family])
