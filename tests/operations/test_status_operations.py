"""What a run of pyinfra shows of hosts' states: also those of hosts that were lost on the way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from modules.asking.side_by_side import Answer
from modules.operations import status
from modules.reporting import host_errors
from modules.reporting.host_errors import HostError
from tests.unit.status_samples import told

FLEET = """
fleet: status-operations
defaults:
  services:
    gpt-oss: {engine: vllm-mxfp4, model: gpt-oss-120b}
hosts:
  spark-1: {address: 192.0.2.1}
  spark-2: {address: 192.0.2.2}
  spark-3: {address: 192.0.2.3}
"""


def test_a_host_that_was_lost_is_unknown_and_not_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET)
    monkeypatch.setenv("TINDERBOX_FLEET", str(path))
    noted: dict[str, str] = {}
    monkeypatch.setattr(status, "note_answers", lambda _, answers: noted.update(answers))
    monkeypatch.setattr(status, "last_answers", lambda _: {"spark-2": "2026-11-29T20:00:00Z"})
    monkeypatch.setattr(status, "_answers", {"spark-1": Answer(json.dumps({"status": told()}), "", 0)})
    error = HostError(host="spark-2", operation="", said="Could not connect (timed out)")
    monkeypatch.setattr(host_errors, "_here", {"spark-2": [error]})

    report = status.report_of(["spark-1", "spark-2", "spark-3"])

    first, second, third = report.hosts
    assert (first.answers, first.services[0].state) == (True, "running")
    assert (second.answers, second.seen, second.services[0].state) == (False, "2026-11-29T20:00:00Z", "unknown")
    assert str(second.trouble).startswith("Could not connect (timed out): nothing lets us in at 192.0.2.2")
    assert third.trouble == "it did not answer"
    assert noted == {"spark-1": str(first.seen)}
