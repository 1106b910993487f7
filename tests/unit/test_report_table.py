"""The table at the end of a run, and the line to try a service by."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest
from rich.console import Console
from typer import Exit

from modules.fleet import Fleet, load_fleet
from modules.gating import Verdict
from modules.lab.layout import ROOT
from modules.reporting.measured import Figure, Measured, MeasuredService
from modules.reporting.record import note_load
from modules.reporting.report import State
from modules.reporting.table import load_lines, main, rows_of, table_of
from tests.unit.report_samples import SLOW_LOAD

FLEET = """\
fleet: never-measured
defaults:
  services:
    gpt-oss:
      engine: vllm
      model: gpt-oss-20b
      gate:
        thresholds:
          pp2048 c1: {min: 3000, last_good: {fail: 0.15}, fleet: {fail: 0.1}}
hosts: {spark-1: {address: 10.0.0.11}}
"""


@pytest.fixture
def fleet_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET)
    monkeypatch.setenv("TINDERBOX_FLEET", str(path))
    return path


def test_without_a_measurement_there_is_nothing_to_try_and_it_says_so(
    fleet_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(Exit) as left:
        main(trial=True)
    assert left.value.exit_code == 1
    assert "Nothing to try yet" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("word", "rc", "told"),
    [("--help", 0, "TINDERBOX_FLEET"), ("--tyr", 2, "No such option"), ("now", 2, "unexpected extra argument")],
)
def test_help_and_what_is_no_option_print_no_table(fleet_file: Path, word: str, rc: int, told: str) -> None:
    command = [sys.executable, "-m", "modules.reporting.table", word]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == rc, said
    assert told in said
    assert "verdict" not in said
    assert "Traceback" not in said


def measured(verdict: Verdict) -> MeasuredService:
    return MeasuredService(
        host="spark-1", service="gpt-oss", engine="vllm", profile="latency", model="gpt-oss-20b", port=8000, gpu=None,
        release="r1", verdict=verdict, measured="2026-11-29T04:45:19Z", reasons=[],
        metrics={
            "pp2048 c1": Figure(mean=4000.0, std=1.0, values=(4000.0,)),
            "tg128@pp2048 c1": Figure(mean=16.1, std=0.1, values=(16.1,)),
        },
    )  # fmt: skip


def shown(fleet: Fleet, found: MeasuredService, failed: Collection[str] = (), width: int = 120) -> str:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(table_of(fleet, rows_of(fleet, Measured(services={"spark-1/gpt-oss": found})), failed))
    return console.export_text()


@pytest.mark.parametrize(("failed", "told"), [({"spark-1"}, True), ({"spark-2"}, False), ((), False)])
def test_figures_of_before_are_not_taken_for_those_of_a_run_that_failed(
    failed: Collection[str], told: bool, fleet_file: Path
) -> None:
    text = shown(load_fleet(fleet_file), measured(Verdict.PASS), failed)

    assert ("this run failed" in text) is told


@pytest.mark.parametrize("state", ["stopped", "failed", "unknown"])
def test_what_a_server_measured_once_is_not_its_state_now(state: State, fleet_file: Path) -> None:
    fleet = load_fleet(fleet_file)
    rows = rows_of(fleet, Measured(services={"spark-1/gpt-oss": measured(Verdict.PASS)}))
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(table_of(fleet, rows, states={"spark-1/gpt-oss": state}))
    assert f"{state} now" in console.export_text()
    assert " now" not in shown(fleet, measured(Verdict.PASS))


def test_a_release_that_failed_is_not_said_to_serve(fleet_file: Path) -> None:
    assert "which failed" in shown(load_fleet(fleet_file), measured(Verdict.FAIL))
    assert "which failed" not in shown(load_fleet(fleet_file), measured(Verdict.WARN))


def test_the_table_says_what_was_asked_also_where_that_is_nothing(fleet_file: Path) -> None:
    fleet = load_fleet(fleet_file)
    found = measured(Verdict.PASS)
    text = shown(fleet, found, width=80)
    for words in ("at least 3000", "last good less 15 %", "fleet's median less 10 %", "no threshold", "PASS"):
        assert words in text


def test_what_a_load_takes_stands_below_the_table(fleet_file: Path, tmp_path: Path) -> None:
    fleet = load_fleet(fleet_file)
    rows = rows_of(fleet, Measured())
    assert load_lines(fleet, rows, tmp_path) == []
    note_load(fleet.name, "spark-1", "gpt-oss", SLOW_LOAD, tmp_path)

    figures, warning = load_lines(fleet, rows, tmp_path)

    assert figures.startswith("spark-1/gpt-oss: 66.4 GB of weights load in 369 s or more (limit 145 s): ")
    assert warning == "spark-1/gpt-oss: the weights will take 369 s or more to load"
