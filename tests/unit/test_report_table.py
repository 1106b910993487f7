"""The table at the end of a run, and the line to try a service by."""

from __future__ import annotations

from pathlib import Path

import pytest

from modules.reporting.table import main


def test_without_a_measurement_there_is_nothing_to_try_and_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(
        "fleet: never-measured\n"
        "defaults: {services: {gpt-oss: {engine: vllm, model: gpt-oss-20b}}}\n"
        "hosts: {spark-1: {address: 10.0.0.11}}\n"
    )
    monkeypatch.setenv("TINDERBOX_FLEET", str(path))

    assert main(["--try"]) == 1
    assert "Nothing to try yet" in capsys.readouterr().out
