"""What each layer of a model keeps of the tokens it has seen, by the model's `config.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Config = Mapping[str, Any]
LayerKind = Literal["full", "sliding", "chunked", "latent", "recurrent", "none"]


class UnknownArchitectureError(ValueError):
    """The config does not tell what a layer caches; the text says which keys stand in the way."""


@dataclass(frozen=True)
class State:
    """A recurrent layer's memory of one sequence, whatever its length.

    `conv`: channels of its short convolution, of which `conv_steps` inputs are kept in the model's type; `ssm`: values
    of the state proper, 32 bits each unless the engine is told otherwise.
    """

    conv: int
    conv_steps: int
    ssm: int

    def size(self, *, speculative: int = 0, ssm_bytes: int = 4) -> int:
        """Bytes. Each token that is drafted ahead keeps one more input of the convolution."""
        return self.conv * (self.conv_steps + speculative) * 2 + self.ssm * ssm_bytes


@dataclass(frozen=True)
class Layer:
    """`values`: cached numbers of one token. `window`: tokens that a sliding or chunked layer looks back."""

    kind: LayerKind
    values: int = 0
    window: int | None = None
    state: State | None = None


def layers_of(config: Config) -> tuple[Layer, ...]:
    """The layers in their order. Raises `UnknownArchitectureError` where that would be a guess."""
    text = text_config(config)
    if (odd := _unmodelled(text)) is not None:
        raise UnknownArchitectureError(odd)
    if "hybrid_override_pattern" in text:
        return tuple(_nemotron_layer(sign, text) for sign in str(text["hybrid_override_pattern"]))
    count = _number(text, "num_hidden_layers")
    if text.get("kv_lora_rank"):
        # Multi-head latent attention: one vector for all heads, and no V beside it.
        values = _number(text, "kv_lora_rank") + _number(text, "qk_rope_head_dim")
        return (Layer("latent", values),) * count
    kinds = _kinds(text, count)
    shared = int(text.get("num_kv_shared_layers") or 0)
    own = [_layer(kind, text) for kind in kinds]
    # Layers at the end that read an earlier layer's cache keep none of their own.
    return tuple(own[: count - shared]) + (Layer("none"),) * shared


def text_config(config: Config) -> Config:
    """The part of a config that describes the language model; a multimodal one nests it."""
    for key in ("text_config", "llm_config", "language_config"):
        nested = config.get(key)
        if isinstance(nested, Mapping) and "num_hidden_layers" in nested:
            return nested
    return config


def _unmodelled(text: Config) -> str | None:
    signs = {
        "compress_ratios": "compressed sparse attention",
        "index_topk": "sparse attention with an index cache",
        "attn_layer_period": "Mamba 1 layers",
        "conv_L_cache": "short-convolution layers",
        "linear_attn_config": "linear attention of an own kind",
        "rwkv_head_size": "RWKV layers",
    }
    found = [f"{what} (`{key}`)" for key, what in signs.items() if text.get(key)]
    return None if not found else f"the config speaks of {', '.join(found)}, whose cache is not modelled here"


def _kinds(text: Config, count: int) -> list[str]:
    named = text.get("layer_types") or text.get("layers_block_type")
    if named is not None:
        if len(named) != count:
            raise UnknownArchitectureError(f"`layer_types` names {len(named)} layers, `num_hidden_layers` {count}")
        return [str(kind) for kind in named]
    window = text.get("sliding_window")
    if pattern := text.get("sliding_window_pattern") or text.get("_sliding_window_pattern"):
        return ["full_attention" if (at + 1) % int(pattern) == 0 else "sliding_attention" for at in range(count)]
    if window and text.get("use_sliding_window", True):
        first = int(text.get("max_window_layers", 0)) if "use_sliding_window" in text else 0
        return ["full_attention"] * first + ["sliding_attention"] * (count - first)
    if text.get("attention_chunk_size"):
        raise UnknownArchitectureError("`attention_chunk_size` without `layer_types`: which layers are chunked?")
    if any(key.startswith(("mamba_", "ssm_", "linear_")) for key in text):
        raise UnknownArchitectureError("recurrent layers without `layer_types`: which layers are which?")
    return ["full_attention"] * count


def _layer(kind: str, text: Config) -> Layer:
    match kind:
        case "full_attention" | "attention":
            return Layer("full", _attention_values(text, whole=True))
        case "sliding_attention":
            return Layer("sliding", _attention_values(text, whole=False), window=_number(text, "sliding_window"))
        case "chunked_attention":
            return Layer("chunked", _attention_values(text, whole=False), window=_number(text, "attention_chunk_size"))
        case "linear_attention":
            return Layer("recurrent", state=_gated_delta_state(text))
        case "mamba" | "mamba2":
            return Layer("recurrent", state=_mamba_state(text))
        case "mlp" | "moe":
            return Layer("none")
        case _:
            raise UnknownArchitectureError(f"layers of type `{kind}` are not modelled here")


def _attention_values(text: Config, *, whole: bool) -> int:
    """K and V of one token. Gemma 4 gives its full layers other heads than its sliding ones."""
    heads = text.get("num_key_value_heads") or _number(text, "num_attention_heads")
    if text.get("multi_query") and "num_key_value_heads" not in text:
        heads = 1
    width = text.get("head_dim") or _number(text, "hidden_size") // _number(text, "num_attention_heads")
    if whole:
        heads = text.get("num_global_key_value_heads") or heads
        width = text.get("global_head_dim") or width
    return int(heads) * (int(width) + int(text.get("v_head_dim") or width))


def _gated_delta_state(text: Config) -> State:
    keys = _number(text, "linear_num_key_heads") * _number(text, "linear_key_head_dim")
    heads, width = _number(text, "linear_num_value_heads"), _number(text, "linear_value_head_dim")
    return State(
        conv=2 * keys + heads * width,
        conv_steps=_number(text, "linear_conv_kernel_dim") - 1,
        ssm=heads * width * _number(text, "linear_key_head_dim"),
    )


def _mamba_state(text: Config) -> State:
    heads = _number(text, "mamba_num_heads", "mamba_n_heads")
    width = _number(text, "mamba_head_dim", "mamba_d_head")
    states = _number(text, "ssm_state_size", "mamba_d_state")
    groups = _number(text, "n_groups", "mamba_n_groups")
    return State(
        conv=heads * width + 2 * groups * states,
        conv_steps=_number(text, "conv_kernel", "mamba_d_conv") - 1,
        ssm=heads * width * states,
    )


def _nemotron_layer(sign: str, text: Config) -> Layer:
    match sign:
        case "M":
            return Layer("recurrent", state=_mamba_state(text))
        case "*":
            return Layer("full", _attention_values(text, whole=True))
        case "-" | "E":
            return Layer("none")
        case _:
            raise UnknownArchitectureError(f"`hybrid_override_pattern` has a layer of kind {sign!r}")


def _number(text: Config, *names: str) -> int:
    for name in names:
        value = text.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    raise UnknownArchitectureError(f"the config has no positive number `{'` or `'.join(names)}`")
