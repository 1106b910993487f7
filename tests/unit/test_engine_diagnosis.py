"""What the catalog knows of a failed start."""

from __future__ import annotations

from modules.catalog import load_catalog
from modules.release.diagnosis import explain

SIGNATURES = load_catalog().signatures


def test_a_known_failure_is_explained_with_what_to_do() -> None:
    log = ["INFO all well", "RuntimeError: CUDA error: an illegal memory access was encountered in replay()"]
    cause, remedy, *_ = explain(SIGNATURES, log)
    assert "CUDA graphs" in cause
    assert "what to do" in remedy


def test_a_log_without_known_failures_explains_nothing() -> None:
    assert explain(SIGNATURES, ["INFO all well"]) == []
