"""The memory plan against what engines really took: published breakdowns, logs, and vLLM's own arithmetic."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from modules.catalog import load_catalog
from modules.lab.model.weights import config as lab_config
from modules.memory import (
    LAB_RESERVE,
    Checkpoint,
    Machine,
    Measured,
    MemoryPlan,
    Settings,
    UnplannableError,
    describe,
    plan_memory,
    serving_of,
)
from modules.memory.cache import capacity
from modules.memory.serving import Serving
from modules.memory.sizes import GIB
from modules.memory.table import capacity_note

CATALOG = load_catalog()
SPARK = Machine(round(121.69 * GIB))
GPT_OSS: dict[str, Any] = {
    "model_type": "gpt_oss",
    "num_hidden_layers": 36,
    "layer_types": ["sliding_attention", "full_attention"] * 18,
    "sliding_window": 128,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "hidden_size": 2880,
    "intermediate_size": 2880,
    "num_experts_per_tok": 4,
    "vocab_size": 201088,
    "max_position_embeddings": 131072,
    "quantization_config": {"quant_method": "mxfp4"},
}
# 65.2 GB of safetensors; the experts' 4-bit values and their scales are U8 in the files.
GPT_OSS_TENSORS = {"U8": 60_914_892_800, "BF16": 4_333_000_000}


def gpt_oss() -> Checkpoint:
    return describe(GPT_OSS_TENSORS, GPT_OSS)


def settings(engine: str, profile: str, **changes: Any) -> Settings:
    entry = CATALOG.engines[engine]
    flags = {**entry.flags, **entry.profiles[profile]}
    flags |= {name.replace("_", "-"): value for name, value in changes.items()}
    return Settings(entry, flags, entry.environment)


def planned(engine: str, profile: str = "latency", **changes: Any) -> MemoryPlan:
    return plan_memory(gpt_oss(), serving_of(settings(engine, profile, **changes)), SPARK)


def test_the_published_breakdown_of_sglang_comes_out() -> None:
    """Baseline C: 66.4 weights, 513,893 tokens in 35.28 GiB, 3.4 graphs: 105 of 121."""
    measured = Measured(weights=round(66.4 * GIB), graphs=round(3.4 * GIB))
    serving = serving_of(settings("sglang", "balanced", max_total_tokens=513_893))
    plan = plan_memory(gpt_oss(), serving, SPARK, measured)

    assert plan.capacity is not None
    assert plan.capacity.token == 73_728
    assert plan.capacity.tokens == 513_893
    assert plan.cache.size == 513_893 * 73_728
    assert int(plan.cache.size / GIB * 100) / 100 == 35.28
    assert int(plan.serving / GIB) == 105
    assert plan.fits


def test_weights_of_gpt_oss_grow_as_sglang_logged_it() -> None:
    assert round(planned("sglang").weights.size / GIB, 1) == 66.4


def test_sixteen_long_sequences_are_not_multiplied_with_every_layer() -> None:
    """The rivals' 144 GiB for 16 times 131072 takes sliding layers for full ones and fp8 for 16 bits, and refuses."""
    plan = planned("vllm-mxfp4", "latency", max_num_seqs=16)

    assert plan.fits
    assert plan.capacity is not None
    wanted = 16 * plan.capacity.sequence / GIB
    assert 36 < wanted < 39  # 18 full layers at 1024 bytes a token, and 18 windows
    assert wanted < 144 / 3
    assert plan.total < SPARK.memory


def test_a_16_bit_cache_takes_twice_the_bytes_of_fp8() -> None:
    small, large = planned("vllm-mxfp4"), planned("vllm-mxfp4", kv_cache_dtype="auto")

    assert small.capacity is not None
    assert large.capacity is not None
    assert large.capacity.token == 2 * small.capacity.token == 36_864
    assert large.capacity.sequence == 2 * small.capacity.sequence


@pytest.mark.parametrize("engine", ["vllm-mxfp4", "vllm", "sglang"])
def test_every_profile_of_the_catalog_fits_a_spark(engine: str) -> None:
    for profile in CATALOG.engines[engine].profiles:
        plan = planned(engine, profile)
        assert plan.fits, (profile, plan.problems)
        assert plan.left > 0


def test_parts_add_up() -> None:
    plan = planned("vllm", "throughput")

    assert plan.total == sum(part.size for part in plan.parts)
    assert plan.total + plan.left == SPARK.memory
    # A fraction is of everything but graphs and what is outside the engine.
    requested = round(0.85 * SPARK.memory)
    workspace = next(part.size for part in plan.others if part.name == "workspace")
    assert plan.weights.size + plan.cache.size + workspace == requested


def test_more_than_the_machine_has_is_refused() -> None:
    plan = planned("vllm-mxfp4", gpu_memory_utilization=0.95)

    assert [problem.kind for problem in plan.problems] == ["machine"]
    assert plan.left < 0
    assert not plan.fits


def test_neighbours_count() -> None:
    serving = serving_of(settings("vllm-mxfp4", "latency"))
    alone = plan_memory(gpt_oss(), serving, SPARK)
    crowded = plan_memory(gpt_oss(), serving, Machine(SPARK.memory, neighbours=40 * GIB))

    assert alone.fits
    assert [problem.kind for problem in crowded.problems] == ["machine"]
    assert crowded.total == alone.total + 40 * GIB


def test_a_context_for_which_there_is_no_room_is_refused() -> None:
    plan = planned("vllm-mxfp4", gpu_memory_utilization=0.6, kv_cache_dtype="auto")

    assert [problem.kind for problem in plan.problems] == ["context"]
    assert "131,072 tokens" in plan.problems[0].text


def test_a_fraction_below_the_weights_is_refused() -> None:
    plan = planned("vllm-mxfp4", gpu_memory_utilization=0.3)

    assert [problem.kind for problem in plan.problems] == ["no cache"]


def test_vllm_wants_its_fraction_free_before_it_starts() -> None:
    plan = planned("vllm-mxfp4", gpu_memory_utilization=0.8)

    assert plan.start_needs >= round(0.8 * SPARK.memory) + 4 * GIB
    assert planned("sglang").start_needs < plan.start_needs


def test_eager_has_no_graphs() -> None:
    assert planned("vllm-mxfp4", "latency").graphs.size == 0
    assert planned("vllm-mxfp4", "latency-graphs").graphs.size > 0
    none = planned("vllm", compilation_config='{"cudagraph_mode": "NONE"}')
    assert none.graphs.size == 0


@pytest.mark.parametrize(
    ("flags", "graphs"),
    [
        ({"max-num-seqs": 256}, 51 + 35),  # as vLLM 0.19 logged it: PIECEWISE=51 (largest=512), FULL=35 (largest=256)
        ({"max-num-seqs": 2}, 3 + 2),
        ({"max-num-seqs": 8, "cudagraph-capture-sizes": ("1", "5", "10")}, 3 + 2),
        ({"max-num-seqs": 8, "enforce-eager": True}, 0),
    ],
)
def test_graphs_are_counted_as_vllm_captures_them(flags: dict[str, Any], graphs: int) -> None:
    engine = CATALOG.engines["vllm"]
    assert serving_of(Settings(engine, flags, {})).graphs == graphs


def test_sizes_are_read_as_vllm_reads_them() -> None:
    engine = CATALOG.engines["vllm"]

    assert serving_of(Settings(engine, {"max-model-len": "128K"}, {})).context == 131072
    assert serving_of(Settings(engine, {"max-model-len": "128k"}, {})).context == 128000
    with pytest.raises(UnplannableError, match="max-model-len: 'long' is no number"):
        serving_of(Settings(engine, {"max-model-len": "long"}, {}))


def test_the_labs_vllm_logs_what_is_planned() -> None:
    """`CPU KV cache size: 2,064,888 tokens, Maximum concurrency for 4,096 tokens per request: 504.12x` (0.32.0)."""
    engine = CATALOG.engines["vllm-cpu"]
    flags = {**engine.flags, **engine.profiles["latency"]}
    serving = serving_of(Settings(engine, flags, {"VLLM_CPU_KVCACHE_SPACE": "1"}))
    plan = plan_memory(describe({"BF16": 103_951_136}, lab_config()), serving, Machine(12 * GIB, reserve=LAB_RESERVE))

    assert plan.fits
    assert plan.cache.size == GIB
    assert plan.capacity is not None
    assert plan.capacity.tokens == 2_064_888
    assert round(plan.capacity.sequences, 2) == 504.12


MAMBA = {"mamba_head_dim": 80, "ssm_state_size": 128, "n_groups": 8, "conv_kernel": 4, "num_attention_heads": 40}
NANO = MAMBA | {"mamba_num_heads": 96, "num_key_value_heads": 8, "head_dim": 128, "hidden_size": 3136}
SUPER = MAMBA | {"mamba_num_heads": 128, "mamba_head_dim": 64, "num_key_value_heads": 2, "head_dim": 128}
GEMMA = {
    "num_hidden_layers": 30,
    "layer_types": [*["sliding_attention"] * 5, "full_attention"] * 5,
    "sliding_window": 1024,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 256,
    "global_head_dim": 512,
    "num_global_key_value_heads": 2,
}


@pytest.mark.parametrize(
    ("config", "serving", "cache_gib", "sequences"),
    [
        # Sliding and full layers with different heads: vLLM 0.20, Gemma 4 26B.
        (GEMMA, Serving("vllm", 8192, 256, 4096, block=16), 40.61, 35.75),
        # 21 Mamba layers and 4 of attention, fp8: vLLM 0.19, Nemotron 3 Nano 4B.
        (
            NANO | {"hybrid_override_pattern": "M" * 21 + "*" * 4 + "-" * 17},
            Serving("vllm", 49152, 256, 2048, kv_dtype="fp8_e4m3", block=16),
            103.39,
            216.94,
        ),
        # The same with three tokens drafted ahead by a layer of its own: Nemotron 3 Super 120B.
        (
            SUPER | {"hybrid_override_pattern": "M" * 40 + "*" * 9 + "E" * 40},
            Serving("vllm", 131072, 20, 2048, kv_dtype="fp8", block=16, speculative=3),
            36.25,
            27.81,
        ),
    ],
    ids=["gemma4-26b", "nemotron3-nano-4b", "nemotron3-super-120b"],
)
def test_concurrency_is_what_vllm_logged_on_sparks(
    config: Mapping[str, Any], serving: Serving, cache_gib: float, sequences: float
) -> None:
    layers = describe({}, config).layers
    held = capacity(layers, serving, serving.context or 0, round(cache_gib * GIB))

    # The log gives the cache to two decimals.
    assert held.sequences == pytest.approx(sequences, rel=2e-4)


def test_sglang_fills_its_pool_as_it_logged() -> None:
    """Qwen2.5-1.5B with fp8: 3,101,822 tokens in 20.71 GB of K and as much V, from 0.4 of 111.92 GB."""
    config = {"num_hidden_layers": 28, "num_attention_heads": 12, "num_key_value_heads": 2, "hidden_size": 1536}
    serving = Serving("sglang", 32768, None, 8192, kv_dtype="fp8_e4m3", kv_tokens=3_101_822, windows_bounded=False)
    plan = plan_memory(describe({"BF16": 3_087_000_000}, config), serving, SPARK)

    assert round(plan.cache.size / GIB, 2) == pytest.approx(41.42, abs=0.02)
    assert plan.cache.size + 3.30 * GIB == pytest.approx(0.4 * 111.92 * GIB, rel=0.002)


def test_llama_cpp_shares_its_context_between_slots() -> None:
    config = {**GPT_OSS, "quantization_config": {}}
    checkpoint = describe({"MXFP4": 59 * GIB}, config)
    one = plan_memory(checkpoint, serving_of(settings("llama-cpp", "latency")), SPARK)
    many = plan_memory(checkpoint, serving_of(settings("llama-cpp", "throughput")), SPARK)

    full, window_cells = 18 * 2048 * 131072, 128 + 2048
    assert one.cache.size == full + 18 * 2048 * 2304  # 2176 cells, in steps of 256
    assert window_cells < 2304
    assert many.cache.size - one.cache.size == 18 * 2048 * (4096 - 2304)
    assert one.weights.size == 59 * GIB


def test_unknown_layers_are_said_and_not_guessed() -> None:
    config = {**GPT_OSS, "layer_types": ["holographic_attention"] * 36}
    plan = plan_memory(describe(GPT_OSS_TENSORS, config), serving_of(settings("vllm-mxfp4", "latency")), SPARK)

    assert plan.capacity is None
    assert plan.fits  # how much memory the engine takes is known all the same
    assert any("holographic_attention" in remark for remark in plan.remarks)


def test_a_cache_whose_size_is_unknown_is_said_to_be_left_out() -> None:
    unknown = Checkpoint({"Q4_K": 40 * GIB}, unknown="an odd model")
    plan = plan_memory(unknown, serving_of(settings("llama-cpp", "latency")), SPARK)

    assert plan.cache.source == "unknown"
    assert plan.remarks == ("the KV cache is not in this sum, its size is unknown: an odd model",)


def test_an_unknown_cache_type_is_remarked() -> None:
    plan = planned("vllm-mxfp4", kv_cache_dtype="turboquant_k8v4")

    assert any("turboquant_k8v4" in remark for remark in plan.remarks)
    assert plan.capacity is not None
    assert plan.capacity.token == 36_864


def test_without_a_length_there_is_no_plan() -> None:
    engine = CATALOG.engines["vllm"]

    with pytest.raises(UnplannableError, match="max-model-len"):
        plan_memory(describe({}, {"num_hidden_layers": 1}), serving_of(Settings(engine, {}, {})), SPARK)


def test_the_document_is_plain() -> None:
    document = json.loads(json.dumps(planned("vllm").document()))

    assert document["fits"] is True
    assert document["total"] == planned("vllm").total
    assert document["weights"]["source"] == "estimated"


@pytest.mark.parametrize(
    ("engine", "profile"), [("vllm-mxfp4", "latency"), ("sglang", "balanced"), ("vllm", "balanced")]
)
def test_the_factors_that_are_shown_of_a_cache_come_to_its_size(engine: str, profile: str) -> None:
    plan = planned(engine, profile)
    found = re.fullmatch(r"([\d.]+) sequences of ([\d,]+) tokens, ([\d,.]+) MiB each", capacity_note(plan))
    assert found is not None
    assert float(found[1]) * float(found[3].replace(",", "")) * 2**20 == pytest.approx(plan.cache.size, rel=0.003)
