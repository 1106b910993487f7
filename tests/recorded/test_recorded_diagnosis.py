"""The diagnosis and the memory plan over recorded logs of real machines, where that folder lies beside the repository.

The recordings are other people's files and not part of the project; what they must lead to is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from modules.catalog import load_catalog
from modules.diagnosis import Bundle, Finding, Log, diagnose, mask_lines
from modules.facts.parse.text import lines_of
from modules.facts.parse.vllm_log import parse_vllm_log
from modules.memory.cache import capacity
from modules.memory.layers import layers_of
from modules.memory.serving import Serving
from modules.memory.sizes import GIB
from modules.spec.signature import LogSource

RECORDED = Path(__file__).parents[3] / "shared" / "recorded"
SIGNATURES = load_catalog().signatures
FAILURES: dict[str, tuple[LogSource, str]] = {
    "vllm-fail-01-mm-item-larger-than-batch.txt": ("engine", "batch-smaller-than-item"),
    "vllm-fail-02-module-not-found-compressed-tensors.txt": ("engine", "module-missing"),
    "vllm-fail-03-no-kernel-image-cu129.txt": ("engine", "wheel-without-sm121"),
    "vllm-fail-04-no-scaledmm-kernel.txt": ("engine", "scaled-mm-kernel-missing"),
    "vllm-fail-05-cutlass-error-internal.txt": ("engine", "cutlass-internal"),
    "sglang-fail-01-kv4-attention-backend.txt": ("engine", "kv-cache-type-refused"),
    "sglang-fail-02-attributeerror-weight.txt": ("engine", "unknown"),
    "sglang-fail-03-encoder-urls.txt": ("engine", "unknown"),
    "sglang-fail-05-graph-capture-calibration.txt": ("engine", "unknown"),
    "sglang-fail-06-importerror-kvfp4.txt": ("engine", "module-missing"),
    "git-01-reference-not-a-tree.txt": ("build", "commit-missing"),
    "git-02-pathspec.txt": ("build", "commit-missing"),
    "ninja-01-killed-137.txt": ("build", "compiler-killed"),
    "nospace-01-dd.txt": ("build", "no-space"),
    "docker-version-03-daemon-down.txt": ("build", "docker-down"),
    "docker-build-02-canceled.txt": ("build", "pull-stopped"),
    "hf-01-cli-repo-not-found-or-private.txt": ("fetch", "hub-not-found"),
    "hf-02-cli-gated-401.txt": ("fetch", "hub-gated"),
    "hf-04-cli-revision-not-found.txt": ("fetch", "hub-not-found"),
    "hf-05-cli-rate-limit-429.txt": ("fetch", "hub-rate-limit"),
    "hf-06-py-gated-403-traceback.txt": ("fetch", "hub-gated"),
    "hf-07-cli-dns-retries.txt": ("fetch", "name-not-resolved"),
}
HEALTHY: dict[str, LogSource] = {
    "vllm-start-": "engine",
    "sglang-start-": "engine",
    "llama-server-start-": "engine",
    "nccl-info-01-net-ib": "engine",
    "torch-": "engine",
    "kernel-": "kernel",
    "docker-build-03-ok": "build",
}
MAMBA = {"mamba_head_dim": 80, "ssm_state_size": 128, "n_groups": 8, "conv_kernel": 4, "num_attention_heads": 40}
NANO = MAMBA | {"mamba_num_heads": 96, "num_key_value_heads": 8, "head_dim": 128, "hidden_size": 3136}
SUPER = MAMBA | {"mamba_num_heads": 128, "mamba_head_dim": 64, "num_key_value_heads": 2, "head_dim": 128}
# By the published configs: how many layers of which kind, and their heads.
KV_CACHES: dict[str, tuple[dict[str, Any], Serving]] = {
    "vllm-start-01-ok-nano4b-long-download.txt": (
        NANO | {"hybrid_override_pattern": "M" * 21 + "*" * 4},
        Serving("vllm", 49152, 256, 2048, kv_dtype="fp8_e4m3", block=16),
    ),
    "vllm-start-02-ok-super120b-marlin-fp4.txt": (
        SUPER | {"hybrid_override_pattern": "M" * 40 + "*" * 9},
        Serving("vllm", 131072, 20, 2048, kv_dtype="fp8", block=16, speculative=3),
    ),
    "vllm-start-04-ok-gemma4-26b.txt": (
        {
            "num_hidden_layers": 30,
            "layer_types": [*["sliding_attention"] * 5, "full_attention"] * 5,
            "sliding_window": 1024,
            "num_attention_heads": 16,
            "num_key_value_heads": 8,
            "head_dim": 256,
            "global_head_dim": 512,
            "num_global_key_value_heads": 2,
        },
        Serving("vllm", 8192, 256, 4096, block=16),
    ),
}


def findings(path: Path, kind: LogSource, *, failed: bool) -> tuple[Finding, ...]:
    lines = mask_lines(lines_of(path.read_text(errors="replace")))
    return diagnose(Bundle((Log(path.name, kind, lines),), failed=failed), SIGNATURES).findings


def healthy() -> list[tuple[Path, LogSource]]:
    found = sorted(RECORDED.iterdir()) if RECORDED.is_dir() else []
    return [(path, kind) for path in found for prefix, kind in HEALTHY.items() if path.name.startswith(prefix)]


if RECORDED.is_dir():

    @pytest.mark.parametrize(("path", "kind"), healthy(), ids=lambda value: getattr(value, "name", ""))
    def test_a_healthy_recording_matches_nothing(path: Path, kind: LogSource) -> None:
        assert findings(path, kind, failed=False) == ()

    @pytest.mark.parametrize("name", FAILURES)
    def test_a_recorded_failure_is_found_first(name: str) -> None:
        kind, expected = FAILURES[name]

        assert findings(RECORDED / name, kind, failed=True)[0].name == expected

    @pytest.mark.parametrize("name", KV_CACHES)
    def test_the_kv_cache_is_what_vllm_logged(name: str) -> None:
        config, serving = KV_CACHES[name]
        logged = parse_vllm_log((RECORDED / name).read_text())
        assert logged.kv_gib is not None
        held = capacity(layers_of(config), serving, serving.context or 0, round(logged.kv_gib * GIB))

        # The log gives the cache to two decimals.
        assert held.sequences == pytest.approx(logged.max_concurrency, rel=2e-4)


def test_expectations_name_signatures() -> None:
    assert {name for _, name in FAILURES.values()} - {"unknown"} <= SIGNATURES.keys()
