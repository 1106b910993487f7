"""How much a KV cache holds, by the rules of the engine that fills it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from modules.memory.layers import Layer
from modules.memory.serving import Serving
from modules.memory.sizes import kv_bits

# vLLM makes an attention page at least as large as a recurrent state, in steps of this many tokens.
_STATE_STEP = 16
# Up to this ratio, vLLM pads the smaller set of like layers rather than split the larger one.
_PADDED_BELOW = 1.5
# llama.cpp rounds the cells of a sliding layer up.
_LLAMA_CELLS = 256


@dataclass(frozen=True)
class Capacity:
    """What a cache can hold.

    `sequence`: bytes that one sequence of full length takes; `sequences`: how many of those there is room for;
    `tokens`: as the engine logs them; `token`: bytes of each further token of a sequence longer than every window.
    """

    sequence: int
    sequences: float
    tokens: int
    token: int


def capacity(layers: Sequence[Layer], serving: Serving, context: int, size: int) -> Capacity:
    """What `size` bytes of cache hold of sequences of `context` tokens."""
    caching = [_kept(layer, serving) for layer in layers if layer.kind != "none"]
    token = token_bytes(layers, serving)
    if serving.family == "llama-cpp":
        return Capacity(size, 1.0, context, token)  # taken at the start, for the context that its slots share
    if serving.family == "sglang":
        return _pooled(caching, serving, context, size, token)
    unit, units = _paged(caching, serving, context)
    sequences = size // unit / units
    return Capacity(unit * units, sequences, int(sequences * context), token)


def token_bytes(layers: Iterable[Layer], serving: Serving) -> int:
    """Bytes of one more token of a sequence that is longer than every window."""
    kept = (_kept(layer, serving) for layer in layers)
    return sum(value_bytes(layer.values, serving.kv_dtype) for layer in kept if layer.window is None)


def value_bytes(values: int, dtype: str) -> int:
    """Bytes of cached numbers; of an unknown data type as of a 16-bit one, which is seldom too little."""
    return math.ceil(values * (kv_bits(dtype) or 16.0) / 8)


def llama_cache(layers: Iterable[Layer], serving: Serving, context: int) -> int:
    """Bytes that llama.cpp takes at the start: a sliding layer keeps a window a sequence, and the batch being read."""
    sequences = serving.sequences or 1
    total = 0
    for layer in (_kept(layer, serving) for layer in layers):
        cells = context
        if layer.window is not None:
            wanted = layer.window * sequences + serving.batched
            cells = min(context, _LLAMA_CELLS * math.ceil(wanted / _LLAMA_CELLS))
        total += value_bytes(layer.values, serving.kv_dtype) * cells + _state(layer, serving) * sequences
    return total


def _kept(layer: Layer, serving: Serving) -> Layer:
    """The layer as the engine's cache treats it."""
    if layer.window is None or serving.windows_bounded:
        return layer
    return replace(layer, kind="full", window=None)


def _paged(layers: Sequence[Layer], serving: Serving, context: int) -> tuple[int, int]:
    """Bytes of a block of vLLM's pool, and how many of those a sequence takes at most.

    All groups of like layers draw from one pool, so a block is as large for each: v1/core/kv_cache_utils.py, 0.19 to
    0.32.
    """
    if all(layer.kind in {"full", "latent"} for layer in layers):
        block = sum(value_bytes(layer.values, serving.kv_dtype) for layer in layers) * serving.block
        return max(1, block), math.ceil(context / serving.block)
    alike = Counter(layers)
    fewest, most = min(alike.values()), max(alike.values())
    width = most if most < fewest * _PADDED_BELOW else fewest
    page, block = _page(layers, serving)
    units = sum(
        math.ceil(count / width) * _blocks(layer, serving, context, _tokens_a_page(layer, serving, page, block))
        for layer, count in alike.items()
    )
    return page * width, units


def _page(layers: Iterable[Layer], serving: Serving) -> tuple[int, int]:
    """Bytes of one layer's block, and the tokens of a block of the layer with the most bytes a token."""
    widest = max((value_bytes(layer.values, serving.kv_dtype) for layer in layers), default=0)
    state = max((_state(layer, serving) for layer in layers), default=0)
    if not widest:
        return state, 1
    block = serving.block
    if state > widest * block:
        block = _STATE_STEP * math.ceil(state / (widest * _STATE_STEP))
    return widest * block, block


def _tokens_a_page(layer: Layer, serving: Serving, page: int, block: int) -> int:
    """A layer with fewer bytes a token has longer blocks where that comes out even, else a part of them stays empty."""
    own = value_bytes(layer.values, serving.kv_dtype) * block
    return block * (page // own) if own and page % own == 0 else block


def _blocks(layer: Layer, serving: Serving, context: int, block: int) -> int:
    if layer.state is not None:
        return 1 + serving.speculative
    if layer.window is None:
        return math.ceil(context / block)
    if layer.kind == "chunked":
        return math.ceil(min(layer.window + serving.batched, context) / block)
    # The window need not begin where a block does.
    return math.ceil(min(layer.window - 1 + serving.batched, context) / block) + 1


def _pooled(layers: Sequence[Layer], serving: Serving, context: int, size: int, token: int) -> Capacity:
    """SGLang: one pool of tokens, and beside it a state for each running sequence."""
    state = sum(_state(layer, serving) for layer in layers)
    tokens = size // token if token else 0
    sequence = token * context + state
    return Capacity(sequence, size / sequence if sequence else math.inf, tokens, token)


def _state(layer: Layer, serving: Serving) -> int:
    return 0 if layer.state is None else layer.state.size(speculative=serving.speculative)
