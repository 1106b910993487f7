"""What an operator is told of a job that failed: not its log, but what matters of it, and what to do."""

from __future__ import annotations

import json

import pytest

from modules.facts.job import JobStatus, parse_status
from modules.operations.failed_job import failure
from modules.operations.job import Job

BUILD = Job("image", "abc", "image tiny", ("true",), 60, "build")
SILENT = Job("start", "abc", "start gpt-oss", ("true",), 60)


def failed(**changes: object) -> JobStatus:
    base = {
        "job": "image-abc", "state": "failed", "cause": "exit-code", "exit_code": 1, "elapsed_s": 65,
        "directory": "/jobs/image-abc", "tail": ["one", "two"],
    }  # fmt: skip
    return parse_status([json.dumps(base | changes)])


def test_a_failure_tells_why_with_the_logs_end_and_where_the_whole_log_is() -> None:
    assert failure(SILENT, failed()) == [
        "start gpt-oss: failed after 1m05s (exit-code, exit status 1). Its log ends:",
        "    one",
        "    two",
        "the whole log, on the host: /jobs/image-abc/log",
    ]


def test_a_program_that_knows_the_cause_has_it_told_first() -> None:
    result = {"failed": {"cause": "release r2 did not get ready: it has ended; release r1 serves again",
                         "lines": ["loading", "out of order"]}}  # fmt: skip
    assert failure(SILENT, failed(result=result)) == [
        "start gpt-oss: release r2 did not get ready: it has ended; release r1 serves again (after 1m05s)",
        "what was logged until then ends:",
        "    loading",
        "    out of order",
        "the whole log, on the host: /jobs/image-abc/log",
    ]


def test_a_build_names_its_step_and_lines_and_the_known_cause() -> None:
    result = {
        "failed": {
            "step": "kernels: RUN git clone",
            "lines": ["Cloning into 'kernels'...", "fatal: repository 'https://x/gone/' not found", "exit code: 128"],
            "kernel": [],
        }
    }

    lines = failure(BUILD, failed(result=result, tail=["noise", "spark-1: docker build failed with exit status 1"]))

    assert lines[0].startswith(
        "image tiny: failed after 1m05s in step kernels: RUN git clone (exit-code, exit status 1)"
    )
    assert lines[1:4] == [
        "    Cloning into 'kernels'...", "    fatal: repository 'https://x/gone/' not found", "    exit code: 128",
    ]  # fmt: skip
    assert lines[4].startswith("known failure (git-remote-gone): ")
    assert lines[5].startswith("    what to do: check the repository")
    assert len(lines) == 7


@pytest.mark.parametrize(
    "told",
    ["spark-1 kernel: Out of memory: Killed process 41 (cicc)", "oom_kill in /proc/vmstat rose by 1 during the build"],
)
def test_what_the_kernel_says_makes_a_kill_certain(told: str) -> None:
    killed = {"step": "RUN uv build", "lines": ["Killed", "exit code: 137"], "kernel": []}
    seen = killed | {"kernel": [told]}

    supposed = "\n".join(failure(BUILD, failed(result={"failed": killed})))
    certain = "\n".join(failure(BUILD, failed(result={"failed": seen})))

    assert "(compiler-killed)" in supposed
    assert "(build-oom-kill)" in certain
    assert "(kernel-oom-kill)" not in certain
    assert "(compiler-killed)" not in certain


def test_the_programs_own_last_words_are_told_where_they_say_more() -> None:
    result = {"failed": {"step": None, "lines": ["it broke"], "kernel": []}}

    lines = failure(BUILD, failed(result=result, tail=["spark-1: x.service did not get ready again"]))

    assert lines[1:3] == ["    it broke", "    spark-1: x.service did not get ready again"]


def test_lines_that_say_nothing_are_left_out_and_a_long_log_is_cut() -> None:
    noise = [
        "2b9585699ff1: Pulling fs layer",
        "#5 DONE 0.1s",
        "------",
        "#4 sha256:0a5c",
        "#6 [internal] load context",
        "1: Pulling from x",
    ]
    tail = [*noise, *(f"line {number}" for number in range(25))]

    lines = failure(BUILD, failed(tail=tail))

    assert lines[1:-1] == [f"    line {number}" for number in range(10, 25)]


def test_a_cause_is_also_found_in_lines_that_are_not_shown() -> None:
    tail = ["No space left on device", *(f"line {number}" for number in range(20))]

    lines = failure(BUILD, failed(tail=tail))

    assert "No space left" not in "".join(lines[1:16])
    assert any(line.startswith("known failure (no-space)") for line in lines)


def test_a_job_whose_kind_of_log_is_not_known_is_not_looked_through() -> None:
    assert len(failure(SILENT, failed(tail=["No space left on device"]))) == 3


@pytest.mark.parametrize("result", [None, {}, {"failed": "no"}, {"failed": {}}, {"digest": "x"}])
def test_whatever_a_program_has_left_behind_is_no_hindrance(result: object) -> None:
    assert failure(BUILD, failed(result=result))[1:3] == ["    one", "    two"]
