from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from modules.facts.job import JobStatus, parse_status
from modules.hostside import atomic, job, job_status
from modules.operations.follow import doing, leaving
from modules.operations.job import Job, start_command


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    folder = tmp_path / "image-abc"
    folder.mkdir()
    return folder


def write_status(directory: Path, **status: object) -> None:
    (directory / "status.json").write_text(json.dumps({"title": "an image", "started": 1000.0, **status}))


@pytest.mark.parametrize(
    ("told", "state", "cause", "code"),
    [
        ({"SERVICE_RESULT": "success", "EXIT_CODE": "exited", "EXIT_STATUS": "0"}, "succeeded", "success", 0),
        ({"SERVICE_RESULT": "exit-code", "EXIT_CODE": "exited", "EXIT_STATUS": "3"}, "failed", "exit-code", 3),
        # systemd counts an end by SIGTERM as a success of the service; the work was not done.
        (
            {"SERVICE_RESULT": "success", "EXIT_CODE": "killed", "EXIT_STATUS": "TERM"},
            "failed",
            "killed by SIGTERM",
            None,
        ),
        (
            {"SERVICE_RESULT": "signal", "EXIT_CODE": "killed", "EXIT_STATUS": "KILL"},
            "failed",
            "killed by SIGKILL",
            None,
        ),
        ({"SERVICE_RESULT": "timeout", "EXIT_CODE": "killed", "EXIT_STATUS": "TERM"}, "failed", "timeout", None),
        ({"SERVICE_RESULT": "oom-kill", "EXIT_CODE": "killed", "EXIT_STATUS": "KILL"}, "failed", "oom-kill", None),
    ],
)
def test_the_end_is_taken_from_what_systemd_says(
    told: dict[str, str], state: str, cause: str, code: int | None
) -> None:
    assert job.ending(told) == {"state": state, "cause": cause, "exit_code": code}


def test_a_job_whose_unit_is_gone_without_an_end_is_lost(directory: Path) -> None:
    write_status(directory, state="running")

    assert job_status.describe(directory, is_alive=lambda _: True)["state"] == "running"
    assert job_status.describe(directory, is_alive=lambda _: False)["state"] == "lost"


def test_a_job_that_ends_between_the_two_looks_is_not_lost(directory: Path) -> None:
    write_status(directory, state="running")

    def ends_now(_: str) -> bool:
        write_status(directory, state="succeeded", ended=1010.0)
        return False

    assert job_status.describe(directory, is_alive=ends_now)["state"] == "succeeded"


def test_the_end_is_written_down_once_a_full_disk_has_room_again(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_status(directory, state="running")
    failures = [OSError(28, "No space left on device")] * 3
    write = atomic.write_json

    def full(path: Path, document: object) -> None:
        if failures:
            raise failures.pop()
        write(path, document)

    monkeypatch.setattr(job, "write_json", full)
    monkeypatch.setattr(job, "_host_ends", lambda: False)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setenv("SERVICE_RESULT", "exit-code")

    job.finish(directory)

    assert job_status.describe(directory)["state"] == "failed"


@pytest.mark.parametrize(("now", "left"), [(1100.0, 500), (1590.0, 10), (1600.0, None), (1700.0, None)])
def test_the_estimated_time_goes_on_while_the_program_is_silent(directory: Path, now: float, left: int | None) -> None:
    write_status(directory, state="running")
    (directory / "progress.json").write_text(json.dumps({"step": "compiling", "ends_at": 1600}))

    told = parse_status([json.dumps(job_status.describe(directory, is_alive=lambda _: True, now=now))]).progress

    assert told is not None
    assert (told.step, told.left_s) == ("compiling", left)


def test_time_stands_still_once_a_job_has_ended(directory: Path) -> None:
    write_status(directory, state="failed", ended=1042.5)

    assert job_status.describe(directory, now=9999.0)["elapsed_s"] == 42.5


def test_a_job_that_was_never_started_is_absent(tmp_path: Path) -> None:
    assert parse_status([json.dumps(job_status.describe(tmp_path / "image-none"))]).state == "absent"


def test_the_tail_has_whole_lines_and_of_an_overdrawn_one_the_last_state(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"first\n  0%\r 50%\r100%\r\n\nl\xc3\xa4st \xff")

    assert job_status.tail(log) == ["first", "100%", "l\u00e4st \ufffd"]
    assert job_status.tail(tmp_path / "none") == []


def test_the_tail_is_bounded(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"line {number}\n" for number in range(100_000)))

    assert job_status.tail(log) == [f"line {number}" for number in range(100_000 - job_status.TAIL_LINES, 100_000)]


def test_the_program_is_named_by_a_file_so_that_systemd_expands_nothing_in_it(directory: Path) -> None:
    words = job.unit_arguments("image-abc", directory, "an image", 600)

    assert words[-3].endswith("job.py")
    assert words[-2:] == ["exec", str(directory)]
    assert "--property=RuntimeMaxSec=600" in words
    assert "--property=EnvironmentFile=-/etc/tinderbox/network.env" in words


def test_job_and_host_agree_on_the_unit() -> None:
    assert Job("image", "abc", "t", ("true",), 1).unit == job_status.unit_of(job.identity("image", "abc"))


@pytest.mark.parametrize("bad", ["", "Big", "a/b", "-a", "a b", "a$b", "a%b"])
def test_names_that_systemd_would_not_take_are_refused(bad: str) -> None:
    with pytest.raises(ValueError, match="lower-case"):
        Job(bad, "key", "t", ("true",), 1)
    with pytest.raises(ValueError, match="lower-case"):
        Job("name", bad, "t", ("true",), 1)


def test_every_word_of_the_command_is_quoted() -> None:
    command = start_command(Job("a", "b", "it's", ("sh", "-c", "echo $HOME; rm x"), 5)).get_raw_value()

    assert command.endswith("""start a b --title 'it'"'"'s' --timeout 5 -- sh -c 'echo $HOME; rm x'""")


def status(**changes: object) -> JobStatus:
    base = {"job": "image-abc", "state": "running", "directory": "/jobs/image-abc", "tail": ["one", "two"]}
    return parse_status(["noise", json.dumps(base | changes)])


def test_nothing_is_no_status() -> None:
    with pytest.raises(ValueError, match="nothing"):
        parse_status([])


def test_a_silent_program_is_shown_by_its_logs_last_line() -> None:
    assert doing("image", status(elapsed_s=3.0)).step == "two"
    assert doing("image", status(tail=[])).step == ""


def test_leaving_a_job_tells_how_to_look_and_how_to_stop_it() -> None:
    text = "\n".join(leaving("spark-1", Job("image", "abc", "image", ("true",), 1), status()))

    assert "spark-1" in text
    assert "tail -f /jobs/image-abc/log" in text
    assert "systemctl stop tinderbox-job-image-abc.service" in text


def test_a_look_waits_for_the_end_of_a_job_that_runs_and_for_no_other(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            write_status(directory, state="succeeded")

    monkeypatch.setattr(time, "sleep", sleep)
    job_status.wait_for(directory, 60)
    assert slept == []  # never started

    write_status(directory, state="running")
    job_status.wait_for(directory, 60)
    assert len(slept) == 3

    job_status.wait_for(directory, 60)
    assert len(slept) == 3


def test_a_look_waits_no_longer_than_it_is_told(directory: Path) -> None:
    write_status(directory, state="running")

    job_status.wait_for(directory, 0.01)

    assert job_status.describe(directory, is_alive=lambda _: True)["state"] == "running"
