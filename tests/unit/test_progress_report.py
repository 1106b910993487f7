from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from modules.hostside.progress import Progress


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def read(folder: Path) -> Any:
    return json.loads((folder / "progress.json").read_text())


def test_rate_is_of_the_last_seconds_and_starts_anew_with_each_step(tmp_path: Path) -> None:
    clock = Clock()
    progress = Progress(tmp_path, clock)

    progress.report("fetching", 0, 1000, "bytes")
    for _ in range(60):
        clock.now += 1
        progress.report("fetching", 500, 1000, "bytes")
    assert read(tmp_path) == {"step": "fetching", "done": 500, "total": 1000, "unit": "bytes", "rate": 0.0}

    clock.now += 1
    progress.report("verifying", 0, 1000, "bytes")
    clock.now += 2
    progress.report("verifying", 300, 1000, "bytes")
    assert read(tmp_path)["rate"] == 150.0


def test_reports_that_follow_each_other_closely_are_not_all_written_but_the_last_of_a_step_is(tmp_path: Path) -> None:
    clock = Clock()
    progress = Progress(tmp_path, clock)

    progress.report("fetching", 1, 10, "bytes")
    progress.report("fetching", 2, 10, "bytes")
    assert read(tmp_path)["done"] == 1

    progress.report("fetching", 10, 10, "bytes")
    assert read(tmp_path)["done"] == 10


def test_outside_of_a_job_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TINDERBOX_JOB_DIR", raising=False)
    monkeypatch.chdir(tmp_path)

    Progress().report("fetching", 1, 10, "bytes")

    assert list(tmp_path.iterdir()) == []


def test_an_estimate_is_kept_as_the_time_of_the_end_and_words_only_where_there_are_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: 5000.0)
    progress = Progress(tmp_path, Clock())

    progress.report("building", left_s=61.4)
    assert read(tmp_path)["ends_at"] == 5061
    assert "note" not in read(tmp_path)

    progress.report("checking", note="others took 2 to 6 minutes")
    assert read(tmp_path)["note"] == "others took 2 to 6 minutes"
    assert "ends_at" not in read(tmp_path)


def test_a_full_disk_stops_no_work(tmp_path: Path) -> None:
    Progress(tmp_path / "not there").report("building")
