"""`make verify LIMIT=...`: which hosts the suite asks. Nothing is asked here: its tests are only collected."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from modules.lab.layout import ROOT

FLEET = """\
fleet: office
groups: {chat: {}}
hosts:
  spark-1: {address: 10.0.0.11, groups: [chat]}
  spark-2: {address: 10.0.0.12, groups: [chat]}
  spark-3: {address: 10.0.0.13}
"""


def collected(path: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[int, set[str], str]:
    """Exit status, hosts that would be asked, and all that was said."""
    fleet = path / "fleet.yaml"
    fleet.write_text(FLEET)
    monkeypatch.setenv("TINDERBOX_FLEET", str(fleet))
    command = [sys.executable, "-m", "pytest", "tests/verify", "--collect-only", "-q", "-p", "no:cacheprovider", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, set(re.findall(r"\[(spark-\d)", done.stdout)), done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "hosts"),
    [
        ((), {"spark-1", "spark-2", "spark-3"}),
        (("--limit", "spark-2"), {"spark-2"}),
        (("--limit", "chat"), {"spark-1", "spark-2"}),
        (("--limit", "spark-1,spark-3"), {"spark-1", "spark-3"}),
    ],
)
def test_only_hosts_within_the_limit_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], hosts: set[str]
) -> None:
    rc, found, said = collected(tmp_path, monkeypatch, *words)
    assert rc == 0, said
    assert found == hosts


def test_a_limit_that_is_no_host_is_refused_with_those_that_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rc, found, said = collected(tmp_path, monkeypatch, "--limit", "spark-9")
    assert (rc, found) == (4, set())
    assert "no host or group matches spark-9; hosts are: spark-1, spark-2, spark-3; groups are: chat" in said


def test_make_hands_its_limit_on() -> None:
    done = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", "verify", "LIMIT=chat"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert 'pytest tests/verify --limit "chat"' in done.stdout
