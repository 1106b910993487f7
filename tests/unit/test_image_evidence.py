"""What of a failed build's output is kept."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from modules.hostside import build_evidence
from modules.hostside.build_evidence import BuildEvidence, kernel_lines, oom_kills

PRELUDE = (
    "--mount=type=secret,id=site,target=/run/secrets/site     set -ae; [ ! -e /run/secrets/site ] || . "
    '/run/secrets/site; set +a;     export UV_DEFAULT_INDEX="${PIP_INDEX_URL:-https://pypi.org/simple}"; '
)
CLONE = f"""\
#4 [tools 1/1] FROM registry.lab:5000/python
#4 sha256:0a5c0d272316
#4 DONE 0.0s

#6 [kernels 2/2] RUN {PRELUDE}git clone https://pypi.lab/gone kernels
#6 sha256:5e42ea6f9f26
#7 [server 1/1] RUN make
#6 0.546 Cloning into 'kernels'...
#7 0.600 compiling
#6 0.656 fatal: repository 'https://pypi.lab/gone/' not found
#6 ERROR: executor failed running [/bin/sh -c {PRELUDE}git clone https://pypi.lab/gone kernels]: exit code: 128
#7 CANCELED
------
 > [kernels 2/2] RUN git clone:
------
executor failed running [/bin/sh -c {PRELUDE}git clone https://pypi.lab/gone kernels]: exit code: 128
"""
# As buildx 0.2x ends.
NEWER = """\
#6 [2/2] RUN make
#6 0.1 cc1plus: all warnings being treated as errors
#6 ERROR: process "/bin/sh -c make" did not complete successfully: exit code: 2
------
 > [2/2] RUN make:
0.1 cc1plus: all warnings being treated as errors
------
Dockerfile:3
--------------------
   3 | >>> RUN make
--------------------
ERROR: failed to solve: process "/bin/sh -c make" did not complete successfully: exit code: 2
"""


def heard(text: str) -> BuildEvidence:
    evidence = BuildEvidence()
    for line in text.splitlines(keepends=True):
        evidence.hear(line)
    return evidence


def test_the_step_that_failed_is_told_with_its_own_last_lines_and_its_end() -> None:
    evidence = heard(CLONE)

    assert evidence.step() == "kernels: RUN git clone https://pypi.lab/gone kernels"
    assert evidence.lines() == [
        "Cloning into 'kernels'...", "fatal: repository 'https://pypi.lab/gone/' not found", "exit code: 128",
    ]  # fmt: skip


def test_newer_clients_end_in_other_words() -> None:
    evidence = heard(NEWER)

    assert evidence.step() == "RUN make"
    assert evidence.lines()[:2] == ["cc1plus: all warnings being treated as errors", "exit code: 2"]


def test_where_no_step_failed_docker_itself_is_heard() -> None:
    evidence = heard("#5 [2/4] RUN sleep 25\n#5 sha256:1545\nserver did not provide an image ID\n")

    assert evidence.step() is None
    assert evidence.lines() == ["server did not provide an image ID"]


def test_only_so_much_is_kept() -> None:
    said = "".join(f"#6 {number}.0 {'x' * 1000} {number}\n" for number in range(500))
    lines = heard(f"#6 [2/2] RUN make\n{said}#6 ERROR: killed\n").lines()

    assert len(lines) <= 61
    assert max(map(len, lines)) <= 400


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str, str], list[list[str]]]:
    """Let the kernel's log and its counters say this; gives the commands that were run for it."""
    asked: list[list[str]] = []

    def let(log: str, vmstat: str) -> list[list[str]]:
        def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
            asked.append(command)
            return subprocess.CompletedProcess(command, 0, log, "")

        monkeypatch.setattr(subprocess, "run", run)
        (tmp_path / "vmstat").write_text(vmstat)
        monkeypatch.setattr(build_evidence, "_VMSTAT", tmp_path / "vmstat")
        return asked

    return let


KILLED = "x kernel: Out of memory: Killed process 41 (cicc)"
VMSTAT = "drop_pagecache 4\noom_kill {}\nnuma_hit 3\n"


def test_the_kernels_kills_since_then_are_told_by_name(kernel: Callable[[str, str], list[list[str]]]) -> None:
    asked = kernel(f"x kernel: docker0: port 1\n{KILLED}\n", VMSTAT.format(8))

    assert kernel_lines(1234.9, kills=7) == [KILLED]
    assert "--since=@1234" in asked[0]


def test_without_the_kernels_log_its_count_tells(kernel: Callable[[str, str], list[list[str]]], tmp_path: Path) -> None:
    kernel("", VMSTAT.format(9))

    assert oom_kills() == 9
    assert kernel_lines(1234.9, kills=7) == [f"oom_kill in {tmp_path}/vmstat rose by 2 during the build"]
    assert kernel_lines(1234.9, kills=9) == []


def test_a_kernel_that_counts_none_tells_of_none(kernel: Callable[[str, str], list[list[str]]]) -> None:
    kernel("", "nr_free_pages 1\n")

    assert oom_kills() == 0
    assert kernel_lines(1234.9, kills=0) == []
