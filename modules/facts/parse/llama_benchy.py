"""llama-benchy's JSON report (`--save-result FILE --format json`)."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from modules.facts.parse.errors import ParseError

_PROGRAM = "llama-benchy"


@dataclass(frozen=True)
class Metric:
    """`values`: one per run, or per request at a concurrency above 1."""

    mean: float
    std: float
    values: tuple[float, ...]


@dataclass(frozen=True)
class Run:
    """One cell of the matrix. Sizes in tokens, throughputs in tokens/s, times in ms.

    Without `_request` a throughput is the total over all requests in flight. None: not measured (the prompt took no
    longer than the latency, or no tokens came); that is neither zero nor a pass.
    """

    concurrency: int
    depth: int
    prompt: int
    response: int
    context_phase: bool
    pp: Metric | None
    pp_request: Metric | None
    tg: Metric | None
    tg_request: Metric | None
    peak: Metric | None
    peak_request: Metric | None
    ttfr_ms: Metric | None
    est_ppt_ms: Metric | None
    e2e_ttft_ms: Metric | None


@dataclass(frozen=True)
class Report:
    """`latency_ms`: what was taken off the prompt times."""

    version: str
    timestamp: str
    model: str
    latency_mode: str
    latency_ms: float
    prefix_caching: bool
    max_concurrency: int
    runs: tuple[Run, ...]


def parse_benchy_json(text: str) -> Report:
    """A whole report; a table that was saved under a `.json` name is named as such."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        what = "a markdown table, not JSON" if text.lstrip().startswith("|") else f"not JSON ({error})"
        raise ParseError(_PROGRAM, what, text=text) from error
    if not isinstance(document, dict) or not isinstance(document.get("benchmarks"), list):
        raise ParseError(_PROGRAM, "expected an object with `benchmarks`", text=text)
    if not document["benchmarks"]:
        raise ParseError(_PROGRAM, "the report holds no benchmark")
    try:
        return Report(
            version=str(document["version"]),
            timestamp=str(document["timestamp"]),
            model=str(document["model"]),
            latency_mode=str(document["latency_mode"]),
            latency_ms=_number("latency_ms", document["latency_ms"]),
            prefix_caching=bool(document["prefix_caching_enabled"]),
            max_concurrency=_size("max_concurrency", document["max_concurrency"]),
            runs=tuple(_run(run, f"benchmarks[{index}]") for index, run in enumerate(document["benchmarks"])),
        )
    except KeyError as missing:
        raise ParseError(_PROGRAM, f"no {missing.args[0]}") from missing


def _run(run: Any, where: str) -> Run:
    if not isinstance(run, dict):
        raise ParseError(_PROGRAM, f"{where} is not an object")

    def metric(key: str) -> Metric | None:
        return _metric(run.get(key), f"{where}.{key}")

    return Run(
        concurrency=_size(f"{where}.concurrency", run["concurrency"]),
        depth=_size(f"{where}.context_size", run["context_size"]),
        prompt=_size(f"{where}.prompt_size", run["prompt_size"]),
        response=_size(f"{where}.response_size", run["response_size"]),
        context_phase=bool(run["is_context_prefill_phase"]),
        pp=metric("pp_throughput"),
        pp_request=metric("pp_req_throughput"),
        tg=metric("tg_throughput"),
        tg_request=metric("tg_req_throughput"),
        peak=metric("peak_throughput"),
        peak_request=metric("peak_req_throughput"),
        ttfr_ms=metric("ttfr"),
        est_ppt_ms=metric("est_ppt"),
        e2e_ttft_ms=metric("e2e_ttft"),
    )


def _metric(value: Any, where: str) -> Metric | None:
    if value is None:
        return None
    try:
        values = tuple(_number(f"{where}.values", one) for one in value["values"])
        return Metric(_number(f"{where}.mean", value["mean"]), _number(f"{where}.std", value["std"]), values)
    except (KeyError, TypeError) as error:
        raise ParseError(_PROGRAM, f"{where} is not {{mean, std, values}}") from error


def _number(where: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ParseError(_PROGRAM, f"{where} is not a finite number", text=str(value))
    return float(value)


def _size(where: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ParseError(_PROGRAM, f"{where} is not a whole number", text=str(value))
    return value
