"""Gates: from a measurement to a verdict. Pure; measuring is the host's job (`modules/hostside/run_gate.py`)."""

from modules.gating.identity import thresholds_id, workload_id
from modules.gating.judgement import Judgement, Line, Verdict
from modules.gating.metrics import Measurement, measurement_of

__all__ = [
    "Judgement",
    "Line",
    "Measurement",
    "Verdict",
    "measurement_of",
    "thresholds_id",
    "workload_id",
]
