"""How long a gate will take, told before it begins."""

from __future__ import annotations

import math

from modules.gating.direction import lower_is_better
from modules.spec.gate import Gate
from modules.spec.workload import BenchyWorkload

# A slow DGX Spark: tokens/s of one stream, and prompt tokens/s. Where a gate's own bounds say better, these are taken.
_DECODE, _PREFILL = 25.0, 1000.0
# Load of a client, of the tokenizer; an answer.
_CLIENT_S, _ANSWER_S = 30.0, 5.0


def estimate_s(gate: Gate, questions: int = 0, before_s: float = 0.0) -> float:
    """Seconds, without further runs. `before_s`: what the same took the last time, which is the better guess."""
    if before_s > 0:
        return before_s
    seconds = _CLIENT_S + _benchy_s(gate, gate.workload) + questions * _ANSWER_S
    if gate.random is not None:
        tokens = gate.random.prompts * (
            gate.random.input / _PREFILL + gate.random.output / _many(gate.random.concurrency)
        )
        seconds += _CLIENT_S + gate.random.runs * tokens
    if gate.sharegpt is not None:
        seconds += _CLIENT_S + gate.sharegpt.runs * gate.sharegpt.time_cap_s
    return min(seconds, gate.budget_s)


def _many(streams: int) -> float:
    """Tokens/s over several streams: each more adds less."""
    return _DECODE * math.pow(streams, 0.6)


def _benchy_s(gate: Gate, workload: BenchyWorkload) -> float:
    least = {
        name: one.min for name, one in gate.thresholds.items() if one.min is not None and not lower_is_better(name)
    }
    seconds = 0.0
    for streams in workload.concurrency:
        for depth in workload.depth:
            cell = f"{f' d{depth}' if depth else ''} c{streams}"
            for pp in workload.pp:
                prompt = streams * (pp + depth) / least.get(f"pp{pp}{cell}", _PREFILL)
                for tg in workload.tg:
                    decode = streams * tg / least.get(f"tg{tg}@pp{pp}{cell}", _many(streams))
                    seconds += (workload.runs + 1) * (prompt + decode)
    return seconds


def told(seconds: float) -> str:
    """As people read it."""
    return f"about {seconds:.0f} s" if seconds < 90 else f"about {seconds / 60:.0f} min"
