"""`vllm bench serve --save-result`: its JSON file."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from modules.facts.parse.errors import ParseError
from modules.facts.parse.vllm_bench import ServeResult

_PROGRAM = "vllm bench serve --save-result"
_LATENCY = re.compile(r"(mean|median|std|p\d+(?:\.\d+)?)_(ttft|tpot|itl|e2el)_ms")


def parse_serve_json(text: str) -> ServeResult:
    """The same figures as the printed block. Which percentiles are there depends on those that were asked."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise ParseError(_PROGRAM, f"not JSON ({error})", text=text) from error
    if not isinstance(document, dict):
        raise ParseError(_PROGRAM, "expected one JSON object", text=text)
    latency: dict[str, dict[str, float]] = {}
    for key, value in document.items():
        if (match := _LATENCY.fullmatch(key)) and value is not None:
            latency.setdefault(match[2], {})[match[1]] = _finite(key, value)
    rate = document.get("request_rate")
    return ServeResult(
        completed=_count(document, "completed"),
        failed=_count(document, "failed") if document.get("failed") is not None else None,
        rate=None if rate in {None, "inf"} or rate == math.inf else _finite("request_rate", rate),
        max_concurrency=_count(document, "max_concurrency") if document.get("max_concurrency") is not None else None,
        duration=_needed(document, "duration"),
        input_tokens=_count(document, "total_input_tokens"),
        output_tokens=_count(document, "total_output_tokens"),
        requests_per_second=_needed(document, "request_throughput"),
        output_throughput=_needed(document, "output_throughput"),
        peak_output_throughput=_optional(document, "max_output_tokens_per_s"),
        total_throughput=_needed(document, "total_token_throughput"),
        latency_ms=latency,
    )


def _finite(key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ParseError(_PROGRAM, f"{key} is not a number", text=str(value))
    return float(value)


def _needed(document: dict[str, Any], key: str) -> float:
    if document.get(key) is None:
        raise ParseError(_PROGRAM, f"no {key}")
    return _finite(key, document[key])


def _optional(document: dict[str, Any], key: str) -> float | None:
    return None if document.get(key) is None else _finite(key, document[key])


def _count(document: dict[str, Any], key: str) -> int:
    value = _needed(document, key)
    if value != int(value):
        raise ParseError(_PROGRAM, f"{key} is not a whole number", text=str(value))
    return int(value)
