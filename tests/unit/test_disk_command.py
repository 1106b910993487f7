"""`make disk`: what is refused, which hosts are unknown, and how it ends. No host is asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer

from modules.converge.process import INTERRUPTED, Finished
from modules.disk import __main__ as command
from modules.disk.told import told_of
from modules.operations.asked import JSON, REPAIR

FLEET = """\
fleet: office
groups: {desk: {}}
hosts: {spark-1: {groups: [desk]}, spark-2: {}}
"""
ONE = '{"host": "spark-1", "disks": []}\n'
BOTH = ONE + '{"host": "spark-2", "disks": []}\n'
RESULTS = '{\n "plan": [],\n "results": null\n}\n'


@pytest.fixture(autouse=True)
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET)
    monkeypatch.setenv("TINDERBOX_FLEET", str(path))
    # What the command sets is taken back with these.
    monkeypatch.setenv(JSON, "")
    monkeypatch.setenv(REPAIR, "")
    monkeypatch.setattr(command, "heed", lambda: None)


def ended(monkeypatch: pytest.MonkeyPatch, results: str, status: int = 0, **options: object) -> tuple[int, list[bool]]:
    """Exit status, and for each run of pyinfra whether it was dry."""
    runs: list[bool] = []

    def run(_deploy: str, *, limits: list[str], dry: bool) -> Finished:
        del limits
        runs.append(dry)
        return Finished(status, results, 1.0)

    monkeypatch.setattr(command, "run_pyinfra", run)
    with pytest.raises(typer.Exit) as caught:
        command.main(**options)  # type: ignore[arg-type]
    return caught.value.exit_code, runs


def test_lines_about_hosts_are_told_from_pyinfras_own() -> None:
    assert sorted(told_of(BOTH + RESULTS)) == ["spark-1", "spark-2"]
    assert told_of('{"host": cut\n' + RESULTS) == {}


def test_it_ends_with_0_when_each_host_was_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ended(monkeypatch, BOTH + RESULTS) == (0, [True])


def test_a_limit_that_is_no_host_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(monkeypatch, "", limit=["spark-9"]) == (1, [])
    assert "no host or group matches spark-9; hosts are: spark-1, spark-2; groups are: desk" in capsys.readouterr().err


def test_a_host_without_an_answer_is_unknown_and_neither_fine_nor_failed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(monkeypatch, ONE + RESULTS, as_json=True) == (3, [True])
    told = capsys.readouterr()
    assert "spark-2: unknown" in told.err
    assert [json.loads(line) for line in told.out.splitlines()] == [
        {"host": "spark-1", "disks": []},
        {"host": "spark-2", "answers": False},
    ]
    assert ended(monkeypatch, "", status=1)[0] == 3
    assert ended(monkeypatch, ONE, limit=["desk"])[0] == 0


def test_ctrl_c_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ended(monkeypatch, "", status=INTERRUPTED)[0] == INTERRUPTED


def test_only_a_repair_changes_hosts_and_one_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ended(monkeypatch, BOTH, repair="owner") == (0, [False])
    assert ended(monkeypatch, BOTH, status=1, repair="owner")[0] == 1
    assert ended(monkeypatch, BOTH, repair="all") == (1, [])
