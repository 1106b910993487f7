"""From a host's logs and figures to the cause of a failure, and what to do about it."""

from modules.diagnosis.bundle import Bundle, Log, bundle_of, start_bundle
from modules.diagnosis.diagnose import Diagnosis, Finding, diagnose
from modules.diagnosis.mask import mask, mask_lines
from modules.diagnosis.report import report

__all__ = [
    "Bundle",
    "Diagnosis",
    "Finding",
    "Log",
    "bundle_of",
    "diagnose",
    "mask",
    "mask_lines",
    "report",
    "start_bundle",
]
