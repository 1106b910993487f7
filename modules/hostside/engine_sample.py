"""What an engine says of itself while it is measured: requests, waiting ones, and its KV cache, from `/metrics`."""

from __future__ import annotations

import math
import re
import urllib.request

FIELDS = ("requests_running", "requests_waiting", "kv_usage_percent", "preemptions")
# The same figure by the names of vLLM (two versions), SGLang (--enable-metrics) and llama.cpp (--metrics).
_NAMES = {
    "requests_running": ("vllm:num_requests_running", "sglang:num_running_reqs", "llamacpp:requests_processing"),
    "requests_waiting": ("vllm:num_requests_waiting", "sglang:num_queue_reqs", "llamacpp:requests_deferred"),
    "kv_usage_percent": (
        *("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
        *("sglang:token_usage", "llamacpp:kv_cache_usage_ratio"),
    ),
    "preemptions": ("vllm:num_preemptions_total", "vllm:num_preemptions"),
}
_SAMPLE = re.compile(r"^([A-Za-z_:][\w:]*)(?:\{.*\})? (\S+)(?: \d+)?$", re.MULTILINE)
_TIMEOUT_S = 2.0


def parsed(text: str) -> dict[str, float | None]:
    """The figures, over all of the engine's processes; None for those that it does not tell."""
    found: dict[str, list[float]] = {}
    for name, value in _SAMPLE.findall(text):
        try:
            number = float(value)
        except ValueError:
            continue
        if math.isfinite(number):
            found.setdefault(name, []).append(number)
    figures: dict[str, float | None] = {}
    for field, names in _NAMES.items():
        values = next((found[name] for name in names if name in found), None)
        if field == "kv_usage_percent":
            # The fullest cache decides; all of these are shares of one.
            figures[field] = None if values is None else 100 * max(values)
        else:
            figures[field] = None if values is None else sum(values)
    return figures


def sample(url: str) -> dict[str, float | None]:
    """One sample of the engine that serves at `url`; None for everything where it does not answer."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{url}/metrics", timeout=_TIMEOUT_S) as answer:
            return parsed(answer.read().decode("utf-8", errors="replace"))
    except (OSError, ValueError):
        return dict.fromkeys(FIELDS)
