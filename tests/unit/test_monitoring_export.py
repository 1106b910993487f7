"""`python -m modules.monitoring export`: what it writes for a Prometheus of the site, and what it says."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from modules.monitoring.__main__ import program

_FLEET = """\
fleet: rack
defaults: {monitoring: {existing_prometheus: %s}}
hosts:
  spark-1:
    address: 10.0.0.11
    settings: {monitoring: {exporters: {listen: 10.0.0.11, scraped_from: [10.0.0.9]}}}
"""


def _export(folder: str, at: Path, monkeypatch: pytest.MonkeyPatch, *, existing: str = "true") -> tuple[int, str]:
    (at / "fleet.yaml").write_text(_FLEET % existing)
    monkeypatch.chdir(at)
    monkeypatch.setenv("TINDERBOX_FLEET", str(at / "fleet.yaml"))
    done = CliRunner().invoke(program, ["export", folder])
    return done.exit_code, done.output


def test_prometheus_is_told_whole_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status, said = _export("out", tmp_path, monkeypatch)

    assert status == 0, said
    assert f"rule_files: [{tmp_path}/out/rules.yml]" in said
    assert f"files: [{tmp_path}/out/targets.json]" in said
    assert sorted(path.name for path in (tmp_path / "out").rglob("*.*")) == [
        "rules.yml",
        "targets.json",
        "tinderbox-fleet.json",
        "tinderbox-host.json",
    ]


def test_a_folder_that_is_a_file_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "out").write_text("")

    status, said = _export("out", tmp_path, monkeypatch)

    assert (status, said) == (1, f"{tmp_path}/out: Not a directory; name a folder that you may write to\n")


def test_a_fleet_that_nobody_else_watches_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status, said = _export("out", tmp_path, monkeypatch, existing="false")

    assert status == 1
    assert said.startswith("fleet.yaml: no host has monitoring.existing_prometheus")
