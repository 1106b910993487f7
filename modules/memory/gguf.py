"""A GGUF file's metadata, in the words of a `config.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# How many layers make a period whose last one is full, where llama.cpp knows it by the architecture's name alone.
_PERIODS = {"gpt-oss": 2, "gemma2": 2, "gemma3": 6, "cohere2": 4}


def config_of(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The config that would describe the same model. A key that is missing stays missing."""
    name = metadata.get("general.architecture", "")

    def of(key: str) -> Any:
        return metadata.get(f"{name}.{key}")

    pattern = of("attention.sliding_window_pattern") or _PERIODS.get(name)
    config = {
        "num_hidden_layers": of("block_count"),
        "hidden_size": of("embedding_length"),
        "num_attention_heads": of("attention.head_count"),
        "num_key_value_heads": _one(of("attention.head_count_kv")),
        "head_dim": of("attention.key_length"),
        "v_head_dim": of("attention.value_length"),
        "kv_lora_rank": of("attention.kv_lora_rank"),
        "qk_rope_head_dim": of("rope.dimension_count") if of("attention.kv_lora_rank") else None,
        "sliding_window": of("attention.sliding_window"),
        "intermediate_size": of("expert_feed_forward_length") or _one(of("feed_forward_length")),
        "num_experts_per_tok": of("expert_used_count"),
        "vocab_size": of("vocab_size"),
        "max_position_embeddings": of("context_length"),
        "layer_types": _layer_types(of("block_count"), of("attention.sliding_window"), pattern),
        # Recurrent layers are told by these; their sizes are not modelled from a GGUF.
        "rwkv_head_size": of("wkv.head_size"),
        "ssm_state_size": of("ssm.state_size"),
    }
    return {key: value for key, value in config.items() if value is not None}


def _one(value: Any) -> Any:
    """A number that is the same for all layers; of a list with different ones nothing, so that it is missed."""
    if not isinstance(value, list):
        return value
    return value[0] if len(set(value)) == 1 else None


def _layer_types(count: Any, window: Any, pattern: Any) -> list[str] | None:
    """Which layers slide: a list of truth values, or the length of a period; None where no layer does."""
    if not isinstance(count, int) or not window:
        return None
    if isinstance(pattern, int):
        pattern = [(at + 1) % pattern != 0 for at in range(count)]
    if not isinstance(pattern, list) or len(pattern) != count:
        return ["unstated"] * count
    return ["sliding_attention" if sliding else "full_attention" for sliding in pattern]
