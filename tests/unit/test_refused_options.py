"""An option that is refused ends with 1: 2 says that a host differs or is blocked, and a pipeline would believe it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from modules.lab.layout import ROOT

PROGRAMS = [
    ("adopt", "--tak"), ("bootstrap", "--limt"), ("check", "--jsn"), ("converge", "--drif"), ("disk", "spark-1"),
    ("discover", "--seconds=99"), ("importer", "--count"), ("logs", "--lines=x"), ("nightly", "--gat"),
    ("reporting", "--limt"), ("status", "--watch=abc"),
]  # fmt: skip


@pytest.mark.parametrize(("program", "word"), PROGRAMS)
def test_a_wrong_option_is_no_finding(program: str, word: str) -> None:
    command = [sys.executable, "-m", f"modules.{program}", word]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"Usage: python -m modules.{program}" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("off", ["off", ""])
def test_a_nightly_check_of_a_refused_fleet_file_ends_in_a_sentence(
    off: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "none.yaml"
    monkeypatch.setenv("TINDERBOX_FLEET", str(path))
    monkeypatch.setenv("TINDERBOX_NIGHTLY", off)
    pyinfra = Path(sys.executable).with_name("pyinfra")
    done = subprocess.run(
        [pyinfra, "@local", "deploys/nightly.py", "--dry"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert f"{path}: no such file; check the path, or TINDERBOX_FLEET\n\nnothing was changed" in done.stderr
    assert "Traceback" not in done.stderr
