"""`make plan`: what does not fit, and what is odd in the file, is told before a deploy is."""

from __future__ import annotations

from pathlib import Path

import pytest

from modules.fleet import __main__ as command

FLEET = """\
fleet: office
hosts:
  spark-1:
    settings:
      services:
        code: {engine: vllm, model: gpt-oss-20b, flags: {FLAG}}
"""


def planned(
    flag: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[str, str]:
    path = folder / f"{len(flag)}.yaml"
    path.write_text(FLEET.replace("FLAG", flag))
    monkeypatch.setenv("TINDERBOX_FLEET", str(path))
    assert command.main() == 0
    told = capsys.readouterr()
    return told.out, told.err


def test_a_lone_service_that_does_not_fit_is_told_what_becomes_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out, _ = planned("gpu-memory-utilization: 0.97", tmp_path, monkeypatch, capsys)
    assert out.splitlines()[-1].endswith(" GiB short; preflight refuses that")
    out, _ = planned("gpu-memory-utilization: 0.97}, memory_plan: warn, environment: {", tmp_path, monkeypatch, capsys)
    assert out.splitlines()[-1].endswith(" GiB short")


def test_a_flag_that_is_not_known_is_told_and_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out, err = planned("gpu-memory-utilisation: 0.4", tmp_path, monkeypatch, capsys)
    assert out.splitlines()[-1].endswith(" GiB left")
    assert ".yaml:6: hosts.spark-1.settings.services.code.flags.gpu-memory-utilisation: " in err
    assert "did you mean gpu-memory-utilization?" in err
