"""The program that answers many questions at once, run as a host runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from modules.facts.program import AskProgram
from modules.facts.survey import survey_answers, survey_command, survey_request

PROGRAM = Path("modules/hostside/survey.py")


def surveyed(*questions: dict[str, Any]) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.read_text()], input=json.dumps(questions) + "\n", capture_output=True, text=True,
        timeout=60, check=True,
    )  # fmt: skip
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "told.py"
    path.write_text(
        "import sys, beside\n"
        "if __name__ == '__main__':\n"
        "    print(beside.NAME, sys.argv[1:], sys.stdin.read())\n"
        "    print('aside', file=sys.stderr)\n"
        "    sys.exit({'fails': 3, 'says': 'out of order'}.get(sys.argv[-1]))\n"
    )
    (tmp_path / "beside.py").write_text("NAME = 'beside'\n")
    return str(path)


def asked(program: str, *words: str, absent: str = "") -> dict[str, Any]:
    return {"program": program, "words": list(words), "absent": absent}


def test_answers_come_in_the_order_of_the_questions() -> None:
    answers = surveyed({"shell": "sleep 0.3; echo one"}, {"shell": "echo two; echo more >&2"}, {"shell": "exit 4"})
    assert answers == [
        {"status": 0, "out": ["one"], "err": []},
        {"status": 0, "out": ["two"], "err": ["more"]},
        {"status": 4, "out": [], "err": []},
    ]


def test_lines_are_those_that_were_printed() -> None:
    (answer,) = surveyed({"shell": r"printf 'a\n\nb'"})
    assert answer["out"] == ["a", "", "b"]


def test_a_program_runs_as_python_runs_it(program: str) -> None:
    quiet, failing, saying = surveyed(asked(program, "x"), asked(program, "fails"), asked(program, "says"))
    assert quiet == {"status": 0, "out": ["beside ['x'] "], "err": ["aside"]}
    assert failing["status"] == 3
    assert (saying["status"], saying["err"]) == (1, ["aside", "out of order"])


def test_one_that_breaks_tells_where_and_stops_no_other(tmp_path: Path, program: str) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("1 / 0\n")
    first, second = surveyed(asked(str(broken)), asked(program, "x"))
    assert first["status"] == 1
    assert first["err"][-1] == "ZeroDivisionError: division by zero"
    assert second["status"] == 0


def test_without_the_program_the_answer_is_what_the_question_says(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.py")
    told, silent = surveyed(asked(missing, absent="null"), asked(missing))
    assert told == {"status": 0, "out": ["null"], "err": []}
    assert silent == {"status": 0, "out": [], "err": []}


@pytest.mark.parametrize("absent", ["", "null", "{}"])
@pytest.mark.parametrize("there", [True, False])
def test_a_survey_answers_as_the_command_by_itself_does(program: str, tmp_path: Path, absent: str, there: bool) -> None:
    command = AskProgram(sys.executable, program if there else str(tmp_path / "missing.py"), ("a b", "$c"), absent)
    alone = subprocess.run(["sh", "-c", command.get_raw_value()], input="", capture_output=True, text=True, check=False)
    done = subprocess.run(
        ["sh", "-c", survey_command().get_raw_value()], input=survey_request([command]),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    (answer,) = survey_answers(["a banner", *done.stdout.splitlines()], 1)
    assert (answer.succeeded, list(answer.out), list(answer.err)) == (
        alone.returncode == 0, alone.stdout.splitlines(), alone.stderr.splitlines(),
    )  # fmt: skip


def test_an_answer_that_is_missing_is_refused() -> None:
    with pytest.raises(ValueError, match="1 answers to 2 questions"):
        survey_answers([json.dumps([{"status": 0, "out": [], "err": []}])], 2)
