"""What layers cache, by configs in the forms of published models."""

from __future__ import annotations

from typing import Any

import pytest

from modules.memory.cache import value_bytes
from modules.memory.checkpoint import describe, from_summary
from modules.memory.gguf import config_of
from modules.memory.layers import UnknownArchitectureError, layers_of

PLAIN: dict[str, Any] = {
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "hidden_size": 8192,
}
GPT_OSS: dict[str, Any] = {
    "num_hidden_layers": 36,
    "layer_types": ["sliding_attention", "full_attention"] * 18,
    "sliding_window": 128,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "hidden_size": 2880,
}
LATENT = {**PLAIN, "num_hidden_layers": 61, "kv_lora_rank": 512, "qk_rope_head_dim": 64}
GATED_DELTA = {
    "num_hidden_layers": 48,
    "layer_types": [*["linear_attention"] * 3, "full_attention"] * 12,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "hidden_size": 2048,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
}
MAMBA = {
    "num_hidden_layers": 42,
    "hybrid_override_pattern": "M" * 21 + "*" * 4 + "-" * 17,
    "mamba_num_heads": 96,
    "mamba_head_dim": 80,
    "ssm_state_size": 128,
    "n_groups": 8,
    "conv_kernel": 4,
    "num_attention_heads": 40,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "hidden_size": 3136,
}


def ideal(config: dict[str, Any], tokens: int) -> int:
    """Bytes of one sequence in 16 bits, without an engine's pages."""
    return sum(
        layer.state.size()
        if layer.state is not None
        else value_bytes(layer.values, "bf16") * min(tokens, layer.window or tokens)
        for layer in layers_of(config)
    )


@pytest.mark.parametrize(
    ("config", "size"),
    # As kvfit 0.3.0 (`estimate_cache`, 32768 tokens, 2 bytes) has it, which was written independently.
    [
        (PLAIN, 10_737_418_240),
        (GPT_OSS, 1_212_678_144),
        (LATENT, 2_302_672_896),
        (GATED_DELTA, 882_573_312),
        (MAMBA, 620_672_000),
    ],
    ids=["plain", "gpt-oss", "latent", "gated delta", "mamba"],
)
def test_one_sequence_takes_what_an_independent_program_says(config: dict[str, Any], size: int) -> None:
    assert ideal(config, 32768) == size


def test_a_window_bounds_a_layer() -> None:
    full = 18 * 2048

    assert ideal(GPT_OSS, 2000) - ideal(GPT_OSS, 1000) == full * 1000
    assert ideal(GPT_OSS, 100) == 36 * 2048 * 100


@pytest.mark.parametrize(
    ("changes", "kinds"),
    [
        (
            {"sliding_window_pattern": 6, "sliding_window": 512, "num_hidden_layers": 12},
            ("sliding" * 1,) * 5 + ("full",),
        ),
        ({"sliding_window": 4096}, ("sliding",)),
        ({"sliding_window": 4096, "use_sliding_window": False}, ("full",)),
        ({"sliding_window": None}, ("full",)),
    ],
)
def test_windows_without_layer_types(changes: dict[str, Any], kinds: tuple[str, ...]) -> None:
    layers = layers_of({**PLAIN, **changes})

    assert tuple(layer.kind for layer in layers[: len(kinds)]) == kinds


def test_upper_layers_may_slide() -> None:
    changes = {"sliding_window": 4096, "use_sliding_window": True, "max_window_layers": 70}
    kinds = [layer.kind for layer in layers_of({**PLAIN, **changes})]

    assert kinds == ["full"] * 70 + ["sliding"] * 10


def test_a_multimodal_config_nests_the_language_model() -> None:
    checkpoint = describe({}, {"vision_config": {"hidden_size": 1152}, "text_config": PLAIN})

    assert len(checkpoint.layers) == 80
    assert checkpoint.multimodal


def test_layers_that_share_a_cache_keep_none() -> None:
    layers = layers_of({**PLAIN, "num_kv_shared_layers": 20})

    assert [layer.kind for layer in layers] == ["full"] * 60 + ["none"] * 20


def test_chunked_attention_looks_back_a_chunk() -> None:
    config = {**PLAIN, "num_hidden_layers": 4, "layer_types": [*["chunked_attention"] * 3, "full_attention"]}
    layers = layers_of({**config, "attention_chunk_size": 8192})

    assert [layer.window for layer in layers] == [8192] * 3 + [None]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"compress_ratios": [4, 128]}, "compress_ratios"),
        ({"index_topk": 2048, "kv_lora_rank": 512}, "index_topk"),
        ({"attn_layer_period": 8}, "attn_layer_period"),
        ({"layer_types": ["full_attention"]}, "names 1 layers"),
        ({"layer_types": ["moonshine"] * 80}, "moonshine"),
        ({"mamba_d_state": 16}, "recurrent layers"),
        ({"attention_chunk_size": 8192}, "attention_chunk_size"),
        ({"num_hidden_layers": None}, "num_hidden_layers"),
        ({"hybrid_override_pattern": "M?"}, "'\\?'|mamba"),
    ],
)
def test_what_is_not_modelled_is_said(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UnknownArchitectureError, match=said):
        layers_of({**PLAIN, **changes})

    checkpoint = describe({"BF16": 10}, {**PLAIN, **changes})
    assert checkpoint.layers == ()
    assert checkpoint.unknown
    assert checkpoint.size == 10


def test_experts_widen_a_token() -> None:
    dense = describe({}, {**PLAIN, "intermediate_size": 100}).shape
    mixed = describe(
        {}, {**PLAIN, "intermediate_size": 100, "moe_intermediate_size": 30, "num_experts_per_tok": 8}
    ).shape

    assert (dense.feed_forward, mixed.feed_forward) == (100, 240)


METADATA: dict[str, Any] = {
    "general.architecture": "gpt-oss",
    "gpt-oss.block_count": 36,
    "gpt-oss.context_length": 131072,
    "gpt-oss.embedding_length": 2880,
    "gpt-oss.attention.head_count": 64,
    "gpt-oss.attention.head_count_kv": 8,
    "gpt-oss.attention.key_length": 64,
    "gpt-oss.attention.value_length": 64,
    "gpt-oss.attention.sliding_window": 128,
    "gpt-oss.expert_used_count": 4,
    "gpt-oss.expert_feed_forward_length": 2880,
}


def test_a_gguf_describes_the_same_layers_as_the_config() -> None:
    assert layers_of(config_of(METADATA)) == layers_of(GPT_OSS)


def test_a_gguf_of_unknown_windows_is_unknown() -> None:
    other = {key.replace("gpt-oss", "newmodel"): value for key, value in METADATA.items()}
    other["general.architecture"] = "newmodel"

    with pytest.raises(UnknownArchitectureError, match="unstated"):
        layers_of(config_of(other))


def test_a_gguf_may_list_its_sliding_layers() -> None:
    pattern = {**METADATA, "gpt-oss.attention.sliding_window_pattern": [True, True, False] * 12}
    kinds = [layer.kind for layer in layers_of(config_of(pattern))]

    assert kinds == ["sliding", "sliding", "full"] * 12


def test_a_summary_without_a_config_is_unknown() -> None:
    checkpoint = from_summary({"format": "safetensors", "tensors": {"BF16": 4}, "config": None})

    assert checkpoint.unknown == "there is no config.json beside the weights"
    assert checkpoint.size == 4
