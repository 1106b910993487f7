"""Settings that are suggested fit; nothing is suggested where nothing does."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from modules.catalog import load_catalog
from modules.memory import (
    Checkpoint,
    Machine,
    Settings,
    Suggestion,
    describe,
    nearest,
    plan_memory,
    refusal,
    serving_of,
    table,
)
from modules.memory.sizes import GIB
from modules.spec.engine import FlagValue

CATALOG = load_catalog()
SPARK = Machine(round(121.69 * GIB))
CONFIG: dict[str, Any] = {
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
}


def dense(size: int) -> Checkpoint:
    return describe({"BF16": size}, CONFIG)


def settings(engine: str, **flags: FlagValue) -> Settings:
    return Settings(CATALOG.engines[engine], {name.replace("_", "-"): value for name, value in flags.items()}, {})


def suggested(checkpoint: Checkpoint, wanted: Settings, machine: Machine = SPARK) -> list[dict[str, Any]]:
    """The suggestions' flags, each planned anew here."""
    found = nearest(checkpoint, wanted, machine)
    for suggestion in found:
        proof = plan_memory(checkpoint, serving_of(suggestion.change.to(wanted)), machine)
        assert proof.fits
        assert proof == suggestion.plan
    return [{**suggestion.change.flags, **suggestion.change.environment} for suggestion in found]


def test_one_change_is_enough_where_one_is() -> None:
    """40 GiB for one sequence of 16 bits: shorter, in 8 bits, or more memory."""
    wanted = settings("vllm", gpu_memory_utilization=0.8, max_model_len=131072, max_num_seqs=4, enforce_eager=True)
    checkpoint = dense(60 * GIB)

    assert not plan_memory(checkpoint, serving_of(wanted), SPARK).fits
    assert suggested(checkpoint, wanted) == [
        {"kv-cache-dtype": "fp8"},
        {"max-model-len": 65536},
        {"gpu-memory-utilization": 0.88},
    ]


def test_a_fraction_that_is_too_high_is_lowered_no_further_than_needed() -> None:
    wanted = settings("vllm", gpu_memory_utilization=0.97, max_model_len=8192, enforce_eager=True)
    found = suggested(dense(60 * GIB), wanted)

    assert found == [{"gpu-memory-utilization": 0.9}]


def test_fewer_sequences_help_where_each_has_a_state() -> None:
    """Recurrent layers hold a state for every sequence that llama.cpp may be asked for."""
    config = {**CONFIG, "layer_types": ["mamba"] * 80, "mamba_num_heads": 128, "mamba_head_dim": 64}
    config |= {"ssm_state_size": 128, "n_groups": 8, "conv_kernel": 4}
    wanted = settings("llama-cpp", ctx_size=8192, parallel=512)
    found = suggested(describe({"Q4_K": 40 * GIB}, config), wanted)

    assert {"parallel": 128} in found


def test_two_changes_where_one_is_not_enough() -> None:
    wanted = settings("vllm", gpu_memory_utilization=0.8, max_model_len=131072, max_num_seqs=4, enforce_eager=True)
    found = suggested(dense(91 * GIB), wanted)

    assert found
    assert all(len(change) == 2 for change in found)
    assert {"gpu-memory-utilization", "max-model-len"} in [set(change) for change in found]


def test_llama_cpp_gets_flags_of_its_own() -> None:
    wanted = settings("llama-cpp", ctx_size=131072, parallel=1)
    found = suggested(dense(80 * GIB), wanted)

    assert {"cache-type-k": "q8_0", "cache-type-v": "q8_0"} in found
    assert {"ctx-size": 65536} in found


def test_the_labs_cache_is_set_by_a_variable() -> None:
    wanted = Settings(CATALOG.engines["vllm-cpu"], {"max-model-len": 131072}, {"VLLM_CPU_KVCACHE_SPACE": "1"})
    config = {**CONFIG, "num_hidden_layers": 8}
    found = suggested(describe({"BF16": GIB}, config), wanted)

    assert {"VLLM_CPU_KVCACHE_SPACE": "4"} in found


def test_a_model_that_is_too_large_gets_no_suggestion() -> None:
    wanted = settings("vllm", gpu_memory_utilization=0.9, max_model_len=8192)
    checkpoint = dense(130 * GIB)
    plan = plan_memory(checkpoint, serving_of(wanted), SPARK)

    assert nearest(checkpoint, wanted, SPARK) == ()
    assert "smaller model" in refusal(plan, ())[-1]


def test_a_refusal_names_problem_and_settings() -> None:
    wanted = settings("vllm", gpu_memory_utilization=0.8, max_model_len=131072, max_num_seqs=4, enforce_eager=True)
    checkpoint = dense(60 * GIB)
    lines = refusal(plan_memory(checkpoint, serving_of(wanted), SPARK), nearest(checkpoint, wanted, SPARK))

    assert lines[0].startswith("one sequence of 131,072 tokens needs 40.00 GiB of KV cache, there are ")
    assert lines[1] == "any one of these would fit:"
    assert lines[2].strip().startswith("kv-cache-dtype: fp8    (")


def test_a_plan_that_fits_has_no_refusal() -> None:
    wanted = settings("vllm", gpu_memory_utilization=0.8, max_model_len=8192)

    assert refusal(plan_memory(dense(40 * GIB), serving_of(wanted), SPARK), ()) == []


@pytest.mark.parametrize(("fraction", "verdict"), [(0.8, "left"), (0.97, "short")])
def test_the_table_shows_parts_and_verdict(fraction: float, verdict: str) -> None:
    wanted = settings("vllm", gpu_memory_utilization=fraction, max_model_len=8192)
    plan = plan_memory(dense(40 * GIB), serving_of(wanted), SPARK)
    console = Console(width=140, record=True, file=io.StringIO())
    console.print(table(plan, "spark-1: gpt-oss"))
    text = console.export_text()

    for words in (
        "weights",
        "40.40 GiB",
        "KV cache",
        "CUDA graphs",
        "system reserve",
        "8.00 GiB",
        "121.69 GiB",
        verdict,
    ):
        assert words in text


def test_a_suggestion_reads_as_flags() -> None:
    wanted = settings("llama-cpp", ctx_size=131072, parallel=1)
    found: tuple[Suggestion, ...] = nearest(dense(80 * GIB), wanted, SPARK)

    assert "cache-type-k: q8_0, cache-type-v: q8_0" in [str(suggestion.change) for suggestion in found]
