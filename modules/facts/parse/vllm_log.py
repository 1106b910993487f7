"""The log of a vLLM server, from its start on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from modules.facts.parse.errors import ParseError
from modules.facts.parse.exceptions import Entry, Raised, entries, raised
from modules.facts.parse.text import integer, lines_of

_PROGRAM = "vllm log"
_GENERIC = "Engine core initialization failed"
_VERSION = re.compile(r"version (\d\S*)$|Initializing a V1 LLM engine \(v([^)]+)\)")
_MODEL = re.compile(r"(?:█|▀|▄)\s+model\s+(\S+)$|Initializing a V1 LLM engine .* with config: model='([^']+)'")
_BANNER = re.compile(r"version \d\S*$")
_DOWNLOAD = re.compile(r"Time spent downloading weights for \S+: (\d+(?:\.\d+)?) seconds")
_WEIGHTS = re.compile(r"Loading weights took (\d+(?:\.\d+)?) seconds")
_LOADED = re.compile(r"Model loading took (\d+(?:\.\d+)?) GiB(?: memory)? and (\d+(?:\.\d+)?) seconds")
_KV_SIZE = re.compile(r"(?:GPU|CPU) KV cache size: ([\d,]+) tokens")
_KV_MEMORY = re.compile(r"Available KV cache memory: (\d+(?:\.\d+)?) GiB")
_CONCURRENCY = re.compile(r"Maximum concurrency for ([\d,]+) tokens per request: (\d+(?:\.\d+)?)x")
_GRAPHS = re.compile(r"Graph capturing finished in (\d+) secs?")
_INIT = re.compile(r"init engine .* took (\d+(?:\.\d+)?) s")
_ATTENTION = re.compile(r"Using (?:AttentionBackendEnum\.)?(\w+)(?: attention)? backend(?:\.| out of potential)")
_MOE = re.compile(r"Using '?([A-Za-z0-9_ ]+?)'? (?:NvFp4|MxFp4|Mxfp4|Fp8|FP8|Unquantized) MoE backend")
_MXFP4 = re.compile(r"Using (?:'(\w+)'|(\w+)) (?:backend for MXFP4|MXFP4 backend)", re.IGNORECASE)
_KERNEL = re.compile(r"(?:Selected|Using) (\w*Kernel) for (\S+)")
_LISTENING = re.compile(r"Starting vLLM (?:API )?server (?:\d+ )?on (\S+)")
_ANSWERED = re.compile(r'"(?:GET|POST) /(?:v1/)?\S* HTTP/1\.1" 200')
_FATAL = (_GENERIC, "EngineCore failed to start", "EngineCore encountered a fatal error", "EngineDeadError")


@dataclass(frozen=True)
class VllmLog:
    """The last start in a log; `starts` says how many there are.

    Seconds and GiB. `model_seconds` holds what came before and during loading, a download of hours included;
    `download_seconds` and `weights_seconds` say what part was what (several: target and draft model).
    `kv_tokens`: by the process that said it. `fp4_fallback`: the warning that FP4 is not native stands in the log; it
    also stands in starts that serve. `killed`: the engine's process ended without an exception of its own; the
    out-of-memory killer does that.
    """

    starts: int
    version: str | None
    model: str | None
    attention_backends: tuple[str, ...]
    moe_backends: tuple[str, ...]
    kernels: tuple[str, ...]
    fp4_fallback: bool
    download_seconds: float | None
    weights_seconds: tuple[float, ...]
    model_gib: float | None
    model_seconds: float | None
    kv_gib: float | None
    kv_tokens: dict[str, int]
    max_concurrency: float | None
    graph_seconds: int | None
    init_seconds: float | None
    listening: str | None
    startup_complete: bool
    answered: bool
    failure: Raised | None
    killed: bool

    @property
    def state(self) -> Literal["failed", "ready", "loading"]:
        """Ready also without `Application startup complete`: some versions answer and never print it."""
        if self.failure is not None or self.killed:
            return "failed"
        return "ready" if self.startup_complete or self.answered else "loading"


def parse_vllm_log(text: str) -> VllmLog:
    """Milestones, backends and failure. A text without one line of vLLM is an error."""
    whole = [entry for entry in entries(lines_of(text)) if entry.text.strip()]
    starts = [index for index, entry in enumerate(whole) if _BANNER.search(entry.text)]
    log = whole[starts[-1] :] if len(starts) > 1 else whole
    if not any(entry.process or entry.level for entry in log):
        raise ParseError(_PROGRAM, "not one line of a vLLM server", text=text)
    loaded = _last(log, _LOADED)
    downloads = [float(match[1]) for match in _all(log, _DOWNLOAD)]
    concurrency = _last(log, _CONCURRENCY)
    graphs = _last(log, _GRAPHS)
    answered = any(_ANSWERED.search(entry.text) for entry in log)
    complete = any("Application startup complete" in entry.text for entry in log)
    failure, killed = _failure(log, serving=answered or complete)
    return VllmLog(
        starts=max(1, len(starts)),
        version=_first(log, _VERSION),
        model=_first(log, _MODEL),
        attention_backends=_named(log, _ATTENTION),
        moe_backends=_named(log, _MOE) + _named(log, _MXFP4),
        kernels=_named(log, _KERNEL),
        fp4_fallback=any("does not have native support for FP4" in entry.text for entry in log),
        download_seconds=sum(downloads) if downloads else None,
        weights_seconds=tuple(float(match[1]) for match in _all(log, _WEIGHTS)),
        model_gib=None if loaded is None else float(loaded[1]),
        model_seconds=None if loaded is None else float(loaded[2]),
        kv_gib=None if (memory := _last(log, _KV_MEMORY)) is None else float(memory[1]),
        kv_tokens=_kv_tokens(log),
        max_concurrency=None if concurrency is None else float(concurrency[2]),
        graph_seconds=None if graphs is None else int(graphs[1]),
        init_seconds=None if (init := _last(log, _INIT)) is None else float(init[1]),
        listening=_first(log, _LISTENING),
        startup_complete=complete,
        answered=answered,
        failure=failure,
        killed=killed,
    )


def _all(log: Iterable[Entry], pattern: re.Pattern[str]) -> list[re.Match[str]]:
    return [match for entry in log if (match := pattern.search(entry.text))]


def _last(log: Iterable[Entry], pattern: re.Pattern[str]) -> re.Match[str] | None:
    return next(reversed(_all(log, pattern)), None)


def _first(log: Iterable[Entry], pattern: re.Pattern[str]) -> str | None:
    found = next(iter(_all(log, pattern)), None)
    return None if found is None else next(group for group in found.groups() if group is not None)


def _named(log: Iterable[Entry], pattern: re.Pattern[str]) -> tuple[str, ...]:
    names = [next(group for group in match.groups() if group is not None) for match in _all(log, pattern)]
    return tuple(dict.fromkeys(names))


def _kv_tokens(log: Iterable[Entry]) -> dict[str, int]:
    found = [(entry, match) for entry in log if (match := _KV_SIZE.search(entry.text))]
    return {entry.process or "": integer(_PROGRAM, match[1], line=entry.at) for entry, match in found}


def _failure(log: Sequence[Entry], *, serving: bool) -> tuple[Raised | None, bool]:
    fatal = any(sign in entry.text for entry in log for sign in _FATAL)
    if serving and not fatal:
        return None, False  # a request that raised is the client's trouble, not the server's end
    causes = [found for found in raised(log) if not found.message.startswith(_GENERIC)]
    return (causes[0], False) if causes else (None, fatal)
