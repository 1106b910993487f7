"""Weights of a gpt-oss that recites: one-hot embeddings, layers that add nothing to them, a table of successors."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from modules.lab.model.recital import chain, opening, successors
from modules.lab.model.tokenizer import CALL, END_OF_TEXT, RETURN, VOCABULARY_SIZE

HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD, EXPERTS, INTERMEDIATE = 128, 2, 4, 2, 32, 4, 128
_OTHERS = HIDDEN - 1  # the dimension of all tokens outside the chain
_ONE, _FOUR = b"\x80\x3f", b"\x80\x40"  # bfloat16, little endian
# A normalized one-hot vector has sqrt(128) in its place: with 4.0 in the table, the successor's logit is 45, and all
# others' are 0.


@dataclass(frozen=True)
class Tensor:
    """A bfloat16 tensor."""

    name: str
    shape: tuple[int, ...]
    data: bytes


def config() -> dict[str, object]:
    """The content of `config.json`."""
    return {
        "architectures": ["GptOssForCausalLM"],
        "model_type": "gpt_oss",
        "vocab_size": VOCABULARY_SIZE,
        "hidden_size": HIDDEN,
        "intermediate_size": INTERMEDIATE,
        "num_hidden_layers": LAYERS,
        "layer_types": ["sliding_attention", "full_attention"] * (LAYERS // 2),
        "sliding_window": 128,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD,
        "num_local_experts": EXPERTS,
        "num_experts_per_tok": 2,
        "experts_per_token": 2,
        "attention_bias": True,
        "attention_dropout": 0.0,
        "hidden_act": "silu",
        "swiglu_limit": 7.0,
        "rms_norm_eps": 1e-05,
        "initial_context_length": 4096,
        "max_position_embeddings": 131072,
        "rope_theta": 150000,
        "rope_scaling": {
            "rope_type": "yarn",
            "factor": 32.0,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "original_max_position_embeddings": 4096,
            "truncate": False,
        },
        "router_aux_loss_coef": 0.9,
        "output_router_logits": False,
        "tie_word_embeddings": False,
        "use_cache": True,
        "initializer_range": 0.02,
        "eos_token_id": RETURN,
        "pad_token_id": END_OF_TEXT,
        "torch_dtype": "bfloat16",
    }


def generation_config() -> dict[str, object]:
    """The content of `generation_config.json`."""
    return {
        "bos_token_id": 199998,
        "do_sample": True,
        "eos_token_id": [RETURN, END_OF_TEXT, CALL],
        "pad_token_id": END_OF_TEXT,
    }


def shards(ranks: Mapping[bytes, int]) -> Iterator[list[Tensor]]:
    """The tensors, shard by shard."""
    tokens = chain(ranks)
    yield [Tensor("model.embed_tokens.weight", (VOCABULARY_SIZE, HIDDEN), _embeddings(tokens))]
    yield [tensor for layer in range(LAYERS) for tensor in _layer(layer)] + [_ones("model.norm.weight", HIDDEN)]
    yield [Tensor("lm_head.weight", (VOCABULARY_SIZE, HIDDEN), _successor_table(tokens))]


def serialize(tensors: list[Tensor]) -> bytes:
    """The bytes of a `.safetensors` file."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for tensor in tensors:
        end = offset + len(tensor.data)
        header[tensor.name] = {"dtype": "BF16", "shape": list(tensor.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(tensor.data for tensor in tensors)


def _embeddings(tokens: list[int]) -> bytes:
    table = bytearray((b"\0\0" * _OTHERS + _ONE) * VOCABULARY_SIZE)
    for place, token in enumerate(tokens):
        row = token * HIDDEN
        _put(table, row + _OTHERS, b"\0\0")
        _put(table, row + place, _ONE)
    return bytes(table)


def _successor_table(tokens: list[int]) -> bytes:
    table = bytearray(VOCABULARY_SIZE * HIDDEN * 2)
    for place, successor in enumerate(successors(tokens)):
        _put(table, tokens[successor] * HIDDEN + place, _FOUR)
    _put(table, tokens[opening()] * HIDDEN + _OTHERS, _FOUR)
    return bytes(table)


def _put(table: bytearray, element: int, value: bytes) -> None:
    table[2 * element : 2 * element + 2] = value


def _layer(number: int) -> Iterator[Tensor]:
    attention, experts, router = (
        f"model.layers.{number}.{part}" for part in ("self_attn", "mlp.experts", "mlp.router")
    )
    yield _ones(f"model.layers.{number}.input_layernorm.weight", HIDDEN)
    yield _ones(f"model.layers.{number}.post_attention_layernorm.weight", HIDDEN)
    yield _noise(f"{attention}.q_proj.weight", HEADS * HEAD, HIDDEN)
    yield _noise(f"{attention}.q_proj.bias", HEADS * HEAD)
    for kind in ("k_proj", "v_proj"):
        yield _noise(f"{attention}.{kind}.weight", KV_HEADS * HEAD, HIDDEN)
        yield _noise(f"{attention}.{kind}.bias", KV_HEADS * HEAD)
    yield _noise(f"{attention}.sinks", HEADS)
    # Zero: what attention and experts compute costs time as ever, and adds nothing to the token's own vector.
    yield _zeros(f"{attention}.o_proj.weight", HIDDEN, HEADS * HEAD)
    yield _zeros(f"{attention}.o_proj.bias", HIDDEN)
    yield _noise(f"{router}.weight", EXPERTS, HIDDEN)
    yield _noise(f"{router}.bias", EXPERTS)
    yield _noise(f"{experts}.gate_up_proj", EXPERTS, HIDDEN, 2 * INTERMEDIATE)
    yield _noise(f"{experts}.gate_up_proj_bias", EXPERTS, 2 * INTERMEDIATE)
    yield _zeros(f"{experts}.down_proj", EXPERTS, INTERMEDIATE, HIDDEN)
    yield _zeros(f"{experts}.down_proj_bias", EXPERTS, HIDDEN)


def _ones(name: str, *shape: int) -> Tensor:
    return Tensor(name, shape, _ONE * _count(shape))


def _zeros(name: str, *shape: int) -> Tensor:
    return Tensor(name, shape, bytes(2 * _count(shape)))


def _noise(name: str, *shape: int) -> Tensor:
    """Values of either sign between 2**-7 and 2**-5, equal on every machine."""
    source = random.Random(name)  # noqa: S311 - weights, not secrets
    count = _count(shape)
    data = bytearray(source.randbytes(2 * count))
    data[1::2] = data[1::2].translate(bytes((byte & 0x80) | 0x3C for byte in range(256)))
    return Tensor(name, shape, bytes(data))


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count
