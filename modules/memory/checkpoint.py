"""A checkpoint as its own files describe it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from modules.memory.gguf import config_of
from modules.memory.layers import Config, Layer, UnknownArchitectureError, layers_of, text_config


@dataclass(frozen=True)
class Shape:
    """What decides the size of buffers; 0 where the config does not tell.

    `feed_forward`: width of one token's feed-forward layer, over all experts that it passes. `context`: positions that
    the model was made for.
    """

    hidden: int = 0
    feed_forward: int = 0
    vocabulary: int = 0
    context: int = 0


@dataclass(frozen=True)
class Checkpoint:
    """`tensors`: bytes by data type, from the headers of the weight files. `unknown`: why `layers` is empty.

    `quantization`: the config's `quant_method`. `multimodal`: an encoder besides the language model is in it.
    """

    tensors: Mapping[str, int]
    layers: tuple[Layer, ...] = ()
    unknown: str | None = None
    shape: Shape = field(default_factory=Shape)
    quantization: str | None = None
    multimodal: bool = False

    @property
    def size(self) -> int:
        """Bytes of all tensors."""
        return sum(self.tensors.values())


def with_draft(checkpoint: Checkpoint, draft: Checkpoint) -> Checkpoint:
    """The two as one: an engine holds the weights of both, and keeps a cache for the layers of both."""
    tensors = {
        kind: checkpoint.tensors.get(kind, 0) + draft.tensors.get(kind, 0)
        for kind in {**checkpoint.tensors, **draft.tensors}
    }
    unknown = checkpoint.unknown or (f"of the draft model: {draft.unknown}" if draft.unknown else None)
    layers = (*checkpoint.layers, *draft.layers) if unknown is None else ()
    return replace(checkpoint, tensors=tensors, layers=layers, unknown=unknown)


def share_of(checkpoint: Checkpoint, hosts: int) -> Checkpoint:
    """What one of so many hosts holds of it: tensors and heads are divided, a latent cache is on each of them."""
    if hosts == 1:
        return checkpoint
    tensors = {kind: math.ceil(size / hosts) for kind, size in checkpoint.tensors.items()}
    layers = tuple(
        layer if layer.kind == "latent" else replace(layer, values=math.ceil(layer.values / hosts))
        for layer in checkpoint.layers
    )
    return replace(checkpoint, tensors=tensors, layers=layers)


def describe(tensors: Mapping[str, int], config: Config) -> Checkpoint:
    """A checkpoint by its tensors' bytes and its config; what the config does not tell is said, not guessed."""
    text = text_config(config)
    layers: tuple[Layer, ...] = ()
    unknown = None
    try:
        layers = layers_of(config)
    except UnknownArchitectureError as error:
        unknown = str(error)
    quantization = config.get("quantization_config") or text.get("quantization_config") or {}
    return Checkpoint(
        tensors=dict(tensors),
        layers=layers,
        unknown=unknown,
        shape=_shape(text),
        quantization=quantization.get("quant_method"),
        multimodal=any(config.get(key) for key in ("vision_config", "audio_config")),
    )


def from_summary(summary: Mapping[str, Any]) -> Checkpoint:
    """A checkpoint from what `hostside/checkpoint.py` prints. Raises `KeyError` for anything else."""
    tensors, config = summary["tensors"], summary["config"]
    if config is None:
        return Checkpoint(tensors=dict(tensors), unknown="there is no config.json beside the weights")
    return describe(tensors, config_of(config) if summary["format"] == "gguf" else config)


def _shape(text: Config) -> Shape:
    def number(*names: str) -> int:
        return next((int(text[name]) for name in names if isinstance(text.get(name), int)), 0)

    experts = number("num_experts_per_tok", "experts_per_token", "num_experts_per_token", "top_k_experts")
    width = number("moe_intermediate_size", "intermediate_size") if experts else number("intermediate_size")
    return Shape(
        hidden=number("hidden_size"),
        feed_forward=width * max(1, experts),
        vocabulary=number("vocab_size"),
        context=number("max_position_embeddings"),
    )
