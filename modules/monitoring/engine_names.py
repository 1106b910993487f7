"""What the engines call their figures at `/metrics`.

vLLM's names were read from the lab's vLLM 0.32 (CPU build), and are those of its documentation. SGLang's are those of
its documentation (docs.sglang.io, production metrics), llama.cpp's those of tools/server/README.md: unverified.
"""

from __future__ import annotations

from dataclasses import dataclass

from modules.spec.engine import Engine

_PREFIXES = {"vllm": "vllm:", "llama-server": "llamacpp:"}
_SGLANG = "sglang:"


def prefix_of(engine: Engine) -> str:
    """How the names of an engine's figures begin."""
    return _PREFIXES.get(engine.command[0], _SGLANG)


@dataclass(frozen=True)
class EngineFigure:
    """One figure under each engine's name; empty where an engine has none. `histogram`: names without `_bucket`."""

    vllm: str
    sglang: str = ""
    llama_cpp: str = ""
    histogram: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Those that there are."""
        return tuple(name for name in (self.vllm, self.sglang, self.llama_cpp) if name)


PROMPT_TOKENS = EngineFigure("vllm:prompt_tokens_total", "sglang:prompt_tokens_total", "llamacpp:prompt_tokens_total")
GENERATION_TOKENS = EngineFigure(
    "vllm:generation_tokens_total", "sglang:generation_tokens_total", "llamacpp:tokens_predicted_total"
)
RUNNING = EngineFigure("vllm:num_requests_running", "sglang:num_running_reqs", "llamacpp:requests_processing")
WAITING = EngineFigure("vllm:num_requests_waiting", "sglang:num_queue_reqs", "llamacpp:requests_deferred")
# Shares of one. llama.cpp takes its cache whole at the start; the ratio is told by versions before September 2025 only.
KV_CACHE = EngineFigure("vllm:kv_cache_usage_perc", "sglang:token_usage", "llamacpp:kv_cache_usage_ratio")
PREEMPTIONS = EngineFigure("vllm:num_preemptions_total")
# llama.cpp has no histograms: of it, latencies are known from the gate alone.
FIRST_TOKEN = EngineFigure("vllm:time_to_first_token_seconds", "sglang:time_to_first_token_seconds", histogram=True)
INTER_TOKEN = EngineFigure("vllm:inter_token_latency_seconds", "sglang:inter_token_latency_seconds", histogram=True)
