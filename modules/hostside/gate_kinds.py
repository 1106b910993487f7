"""The workloads that a client runs, one by one, with what the engine itself counted meanwhile."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside import engine_sample
    from modules.hostside.benchy import given_key
    from modules.hostside.gate_answers import run_answers
    from modules.hostside.gate_benchy import refuse, run_benchy
    from modules.hostside.gate_serve import run_serve
    from modules.hostside.progress import Progress
else:
    import engine_sample
    from benchy import given_key
    from gate_answers import run_answers
    from gate_benchy import refuse, run_benchy
    from gate_serve import run_serve

COLD_START = "cold_start"


def left_of(options: argparse.Namespace, deadline: float, kind: str) -> float:
    """Seconds that there are for `kind`; refuses where there are none."""
    limit_s = deadline - time.monotonic()
    if limit_s <= 0:
        raise refuse(f"the time budget of {options.budget:.0f} s has passed before {kind}")
    return limit_s


def measured(kind: str, options: argparse.Namespace, limit_s: float, progress: Progress) -> dict[str, Any]:
    """One workload against `options.url`."""
    workload, runs = options.gate[kind], options.measure[kind]
    key = given_key(options)
    before, began = engine_sample.counters(options.url, key), time.monotonic()
    if kind == "answers":
        part = run_answers(options, workload, progress)
    elif kind == "benchy":
        part = run_benchy(options, workload, runs, min(limit_s, workload["time_limit_s"]), progress)
    else:
        part = run_serve(kind, options, runs, min(limit_s, workload["time_limit_s"]), progress)
    counted = engine_sample.counted(before, engine_sample.counters(options.url, key))
    return part | {"seconds_spent": round(time.monotonic() - began, 1), "counted_by_engine": counted}
