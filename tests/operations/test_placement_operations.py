"""The lock says where services were placed before any of them is started, and a second run changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyinfra.api import FunctionCommand

from modules.fleet.lock import read_lock
from modules.operations.placement import placements_kept
from tests.operations.stub_host import StubHost, commands_of

FLEET = """\
fleet: office
services:
  chat: {engine: vllm, model: gpt-oss-20b, replicas: 1}
hosts:
  spark-1: {address: 10.0.0.11}
  spark-2: {address: 10.0.0.12}
"""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET)
    monkeypatch.setenv("TINDERBOX_FLEET", str(path))
    return path


def written(command: Any) -> bool:
    """As pyinfra runs it: it looks at the names of its parameters."""
    return bool(command.execute(None, StubHost({}), {}))


def test_what_was_chosen_is_written_once(path: Path) -> None:
    (command,) = commands_of(StubHost({}), placements_kept)
    assert isinstance(command, FunctionCommand)
    # Nothing before it is run: a dry run leaves no lock.
    assert read_lock(path).placements == {}

    assert written(command)

    assert read_lock(path).placements == {"chat": ("spark-1",)}
    host = StubHost({})
    assert commands_of(host, placements_kept) == []
    assert host.noops


def test_the_lock_is_a_plain_file_that_people_read(path: Path) -> None:
    (command,) = commands_of(StubHost({}), placements_kept)
    assert written(command)
    assert "placements:\n  chat:\n  - spark-1\n" in path.with_suffix(".lock.yaml").read_text()
