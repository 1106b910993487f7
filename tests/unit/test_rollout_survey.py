"""What hosts tell comes to whoever runs pyinfra by a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from modules.rollout import survey
from modules.rollout.survey import SURVEY_FILE, Surveyed, note, read_survey, surveyed_here


def test_what_is_noted_is_read_and_the_last_word_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "survey.jsonl"
    monkeypatch.setenv(SURVEY_FILE, str(path))
    monkeypatch.setattr(survey, "_here", {})
    note(Surveyed("spark-1", "gpt", "a", "a", None, turn="release none → a"))
    note(Surveyed("spark-1", "", turn="dockerd is restarted"))
    note(Surveyed("spark-2", "gpt", "a", "a", "a", proved_s=3.0))
    note(Surveyed("spark-1", "gpt", "a", "a", "a", proved_s=5.0))
    with path.open("a") as file:
        file.write('{"host": "spark-3", "serv')
    first, second = read_survey(path)
    assert (first.name, first.turn, first.proved_s) == ("spark-1", "dockerd is restarted", None)
    assert (second.name, second.turn, second.proved_s) == ("spark-2", "", 3.0)
    assert surveyed_here() == [first, second]
    assert read_survey(tmp_path / "none") == []
