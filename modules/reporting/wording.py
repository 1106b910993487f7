"""Metrics and figures as people read them."""

from __future__ import annotations

import re
from dataclasses import dataclass

_CELL = re.compile(r"(?:(?P<kind>tg(?P<tg>\d+)@|ttfr@)?pp(?P<pp>\d+))(?: d(?P<depth>\d+))? c(?P<streams>\d+)")


@dataclass(frozen=True)
class Wording:
    """`title`: what is measured; `detail`: on what workload."""

    title: str
    detail: str


_WORKLOADS = {
    "benchy": "Matrix of prompts",
    "random": "Random prompts",
    "sharegpt": "ShareGPT replay",
    "answers": "Answers",
    "cold_start": "Cold start",
}
_ROWS = {"mean": "mean", "median": "median", "p99": "99 of 100 within"}
_TIMES = {
    "ttft": "First token",
    "tpot": "Time for each token",
    "itl": "Pause between tokens",
    "e2el": "Whole answer",
}
_SERVED = re.compile(r"(?P<kind>random|sharegpt) (?:(?P<row>mean|median|p99) (?P<time>\w+)|(?P<what>\w+ throughput))")


def workload_title(name: str) -> str:
    """A gate's workload as people call it."""
    return _WORKLOADS.get(name, name)


def _of_serving(metric: str) -> Wording | None:
    served = _SERVED.fullmatch(metric)
    if served is None:
        return None
    kind = workload_title(served["kind"])
    if served["what"]:
        return Wording(served["what"].capitalize(), kind)
    return Wording(_TIMES.get(served["time"], served["time"]), f"{_ROWS[served['row']]}, {kind}")


def wording_of(metric: str) -> Wording:
    """A metric's name in words; names of a form that is not known stay as they are."""
    cell = _CELL.fullmatch(metric)
    if metric.startswith("cold start "):
        part = metric.removeprefix("cold start ").replace("kv", "KV")
        return Wording(part[:1].upper() + part[1:], workload_title("cold_start"))
    if cell is None and (served := _of_serving(metric)) is not None:
        return served
    if cell is None:
        return Wording(metric[:1].upper() + metric[1:], "")
    streams = int(cell["streams"])
    parts = [f"{int(cell['pp']):,}-token prompt"]
    parts += [f"after {int(cell['depth']):,} tokens of context"] if cell["depth"] else []
    parts += ["one stream" if streams == 1 else f"{streams} streams"]
    if cell["tg"]:
        return Wording("Decode", f"{int(cell['tg']):,} tokens, {', '.join(parts)}")
    return Wording("Prefill" if cell["kind"] is None else "First answer", ", ".join(parts))


def amount(value: float) -> str:
    """To four digits at most, with thousands set apart: 4,716 and 59.22 and 0.51."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 100 else f"{value:.2f}"


def share(change: float) -> str:
    """A change with its sign, in percent: +3.1 %."""
    rounded = round(100 * change, 1)
    return f"{rounded:+.1f} %" if rounded else "±0.0 %"
