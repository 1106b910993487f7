"""Faults: what a server did while it was measured that no speed makes good. Each fails the gate, by its name."""

from __future__ import annotations

FAILED, TOO_FEW, EMPTY = "failed-requests", "too-few-tokens", "empty-content"
NOT_STREAMED, STALLED, WRONG_USAGE = "not-streamed", "stalled", "wrong-usage"
DIED, CACHED, WRONG = "server-died", "cached-answers", "wrong-answers"
NONE, OUT_OF_TIME = "no-requests", "out-of-time"

Fault = dict[str, str]
"""`kind`: one of the above; `workload`: in which it was seen; `told`: what was seen."""


def fault(kind: str, workload: str, told: str) -> Fault:
    """One fault."""
    return {"kind": kind, "workload": workload, "told": told}
