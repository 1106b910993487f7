"""Whether a failed gate speaks against the server, or only for a measurement that came to nothing.

A server is rolled back for what it did, never for what could not be seen of it.
"""

from __future__ import annotations

from modules.gating.judgement import Judgement, Verdict
from modules.gating.metrics import Measurement
from modules.spec.gate import CONTROLLER

# As modules/hostside/gate_faults.py calls them. A client that asked for nothing has seen nothing.
_OF_THE_CLIENT = {"no-requests"}
# What also a lost connection between controller and host looks like.
_OF_THE_WAY = {"failed-requests", "stalled", "out-of-time"}


def is_proven(judgement: Judgement, measured: Measurement, client: str) -> bool:
    """Whether a fault of the server's, or a figure beyond its bound, is among what failed. `client`: where it ran."""
    excused = _OF_THE_CLIENT | (_OF_THE_WAY if client == CONTROLLER else set())
    if any(one.kind not in excused for one in measured.faults):
        return True
    return any(
        line.verdict is Verdict.FAIL and line.measured is not None and not line.reason.startswith("not measured")
        for line in judgement.lines
    )
