"""What an engine says of itself while it is measured: requests, waiting ones, and its KV cache, from `/metrics`."""

from __future__ import annotations

import math
import re

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
# What it has counted since it started: tokens, requests that came to an end, and tokens that the prefix cache was asked
# for and had.
_COUNTERS = {
    "prompt_tokens": ("vllm:prompt_tokens_total", "sglang:prompt_tokens_total", "llamacpp:prompt_tokens_total"),
    "generation_tokens": (
        *("vllm:generation_tokens_total", "sglang:generation_tokens_total"),
        "llamacpp:tokens_predicted_total",
    ),
    "requests": ("vllm:request_success_total", "sglang:num_requests_total"),
    "prefix_cache_queries": ("vllm:prefix_cache_queries_total",),
    "prefix_cache_hits": ("vllm:prefix_cache_hits_total",),
}
_SAMPLE = re.compile(r"^([A-Za-z_:][\w:]*)(?:\{.*\})? (\S+)(?: \d+)?$", re.MULTILINE)
_TIMEOUT_S = 2.0


def parsed(text: str) -> dict[str, float | None]:
    """The figures, over all of the engine's processes; None for those that it does not tell."""
    found = _values(text)
    figures = _sums(found, _NAMES)
    # The fullest cache decides; all of these are shares of one.
    cache = next((found[name] for name in _NAMES["kv_usage_percent"] if name in found), None)
    return figures | {"kv_usage_percent": None if cache is None else 100 * max(cache)}


def parsed_counters(text: str) -> dict[str, float | None]:
    """What it has counted, over all of its processes; None for what it does not tell."""
    return _sums(_values(text), _COUNTERS)


def figures(text: str) -> dict[str, float | None]:
    """All of both in one."""
    return parsed(text) | parsed_counters(text)


def sample(url: str, key: str | None = None) -> dict[str, float | None]:
    """One sample of the engine that serves at `url`; None for everything where it does not answer.

    `key`: its API key; llama.cpp asks for it here, too.
    """
    text = _asked(url, key)
    return dict.fromkeys(FIELDS) if text is None else parsed(text)


def counters(url: str, key: str | None = None) -> dict[str, float | None]:
    """The engine's counters now; None for everything where it does not answer. `key`: for engines that ask for one."""
    text = _asked(url, key)
    return dict.fromkeys(_COUNTERS) if text is None else parsed_counters(text)


def counted(before: dict[str, float | None], after: dict[str, float | None]) -> dict[str, float | None]:
    """How much was counted between two looks."""
    pairs = {name: (before.get(name), value) for name, value in after.items()}
    return {name: None if old is None or new is None else new - old for name, (old, new) in pairs.items()}


def _values(text: str) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for name, value in _SAMPLE.findall(text):
        try:
            number = float(value)
        except ValueError:
            continue
        if math.isfinite(number):
            found.setdefault(name, []).append(number)
    return found


def _sums(found: dict[str, list[float]], names: dict[str, tuple[str, ...]]) -> dict[str, float | None]:
    known = {field: next((found[name] for name in these if name in found), None) for field, these in names.items()}
    return {field: None if values is None else sum(values) for field, values in known.items()}


def _asked(url: str, key: str | None = None) -> str | None:
    # Who only reads what another one has asked for is spared these.
    import http.client
    import urllib.request

    asked = urllib.request.Request(f"{url}/metrics", headers={} if key is None else {"Authorization": f"Bearer {key}"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(asked, timeout=_TIMEOUT_S) as answer:
            return str(answer.read().decode("utf-8", errors="replace"))
    except (OSError, ValueError, http.client.HTTPException):
        return None
