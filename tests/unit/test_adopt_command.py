"""`make adopt`: what is told of hosts that could not be looked at. No host is asked."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import typer

from modules.adopt import __main__ as command
from modules.converge.process import Finished
from modules.operations.asked import ADOPT_FOUND

FLEET = "fleet: office\nhosts: {spark-1: {}, spark-2: {}}\n"
BARE: dict[str, Any] = {"lines": [], "settings": {}}


def ended(
    answers: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str]:
    """Exit status and what was said, where only these hosts answer, and serve nothing."""
    path = folder / "fleet.yaml"
    path.write_text(FLEET)
    monkeypatch.setenv("TINDERBOX_FLEET", str(path))
    monkeypatch.setenv(ADOPT_FOUND, "")

    def run(_deploy: str, *, limits: list[str], dry: bool) -> Finished:
        assert (limits, dry) == ([], True)
        for host in answers:
            Path(os.environ[ADOPT_FOUND], f"{host}.json").write_text(json.dumps(BARE))
        return Finished(0, "", 1.0)

    monkeypatch.setattr(command, "run_pyinfra", run)
    monkeypatch.setattr(command, "heed", lambda: None)
    with pytest.raises(typer.Exit) as caught:
        command.main()
    return caught.value.exit_code, capsys.readouterr().err


def test_that_nothing_was_found_is_said_of_those_alone_that_were_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, said = ended([], tmp_path, monkeypatch, capsys)
    assert status == 3
    assert "nothing that could be a service" not in said
    assert "spark-1: unknown" in said
    status, said = ended(["spark-2"], tmp_path, monkeypatch, capsys)
    assert status == 3
    assert "nothing that could be a service was found on spark-2\n" in said
    status, said = ended(["spark-1", "spark-2"], tmp_path, monkeypatch, capsys)
    assert (status, said) == (1, "nothing that could be a service was found\n")
