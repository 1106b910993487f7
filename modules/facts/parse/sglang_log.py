"""The log of an SGLang server, from its start on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from modules.facts.parse.errors import ParseError
from modules.facts.parse.exceptions import Entry, Raised, entries, raised
from modules.facts.parse.text import lines_of

_PROGRAM = "sglang log"
_READY = "The server is fired up and ready to roll!"
_VERSION = re.compile(r"SGLang Version (\S+)")
_ARGUMENT = r"{0}='([^']*)'"
_LOADED = re.compile(r"Load weight end\. elapsed=(\d+(?:\.\d+)?) s, type=(\w+),.* mem usage=(\d+(?:\.\d+)?) GB")
_KV = re.compile(
    r"KV Cache is allocated\.(?: dtype: (\S+),)? #tokens: (\d+), K size: (\d+(?:\.\d+)?) GB, V size: (\d+(?:\.\d+)?) GB"
)
_KV_DTYPE = re.compile(r"Using KV cache dtype: (\S+)")
_GRAPHS = re.compile(r"Capture (?:piecewise )?(?:cuda|CUDA) graph end\. Time elapsed: (\d+(?:\.\d+)?) s")
_LIMITS = re.compile(r"max_total_num_tokens=(\d+),.*max_running_requests=(\d+), context_len=(\d+)")
_BACKEND = re.compile(r"Attention backend not specified\. Use (\w+) backend|Use (\w+) as default attention backend")
_LISTENING = re.compile(r"Uvicorn running on (\S+)")


@dataclass(frozen=True)
class SglangLog:
    """Seconds and GB as SGLang counts them (GiB). `kv_gb`: K and V together. `graph_seconds`: of every capture."""

    version: str | None
    model: str | None
    model_class: str | None
    attention_backend: str | None
    weights_seconds: float | None
    weights_gb: float | None
    kv_dtype: str | None
    kv_tokens: int | None
    kv_gb: float | None
    graph_seconds: tuple[float, ...]
    max_running_requests: int | None
    context_length: int | None
    listening: str | None
    fired_up: bool
    failure: Raised | None

    @property
    def state(self) -> Literal["failed", "ready", "loading"]:
        """Ready only by SGLang's own line: uvicorn listens long before."""
        if self.failure is not None:
            return "failed"
        return "ready" if self.fired_up else "loading"


def parse_sglang_log(text: str) -> SglangLog:
    """Milestones and failure; a text without a word of SGLang is an error."""
    log = [entry for entry in entries(lines_of(text)) if entry.text.strip()]
    if not any("sglang" in entry.text.lower() for entry in log):
        raise ParseError(_PROGRAM, "not one line of an SGLang server", text=text)
    loaded, kv, limits = _find(log, _LOADED), _find(log, _KV), _find(log, _LIMITS)
    fired_up = any(_READY in entry.text for entry in log)
    version, backend, listening = _find(log, _VERSION), _find(log, _BACKEND), _find(log, _LISTENING)
    return SglangLog(
        version=None if version is None else version[1],
        model=_argument(log, "model_path"),
        model_class=None if loaded is None else loaded[2],
        attention_backend=(backend[1] or backend[2]) if backend else _argument(log, "attention_backend"),
        weights_seconds=None if loaded is None else float(loaded[1]),
        weights_gb=None if loaded is None else float(loaded[3]),
        kv_dtype=_kv_dtype(log, kv),
        kv_tokens=None if kv is None else int(kv[2]),
        kv_gb=None if kv is None else round(float(kv[3]) + float(kv[4]), 2),
        graph_seconds=tuple(float(match[1]) for entry in log if (match := _GRAPHS.search(entry.text))),
        max_running_requests=None if limits is None else int(limits[2]),
        context_length=None if limits is None else int(limits[3]),
        listening=None if listening is None else listening[1],
        fired_up=fired_up,
        failure=_failure(log, fired_up=fired_up),
    )


def _find(log: Sequence[Entry], pattern: re.Pattern[str]) -> re.Match[str] | None:
    return next((match for entry in log if (match := pattern.search(entry.text))), None)


def _argument(log: Sequence[Entry], name: str) -> str | None:
    line = next((entry.text for entry in log if entry.text.startswith("server_args=")), "")
    match = re.search(r"\b" + _ARGUMENT.format(name), line)
    return None if match is None else match[1]


def _kv_dtype(log: Sequence[Entry], kv: re.Match[str] | None) -> str | None:
    if kv is not None and kv[1] is not None:
        return kv[1]
    said = _find(log, _KV_DTYPE)
    return _argument(log, "kv_cache_dtype") if said is None else said[1]


def _failure(log: Sequence[Entry], *, fired_up: bool) -> Raised | None:
    killed = any("Received sigquit from a child process" in entry.text for entry in log)
    return next(raised(log), None) if killed or not fired_up else None
