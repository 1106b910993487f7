"""A program that is started by a Python without the project's packages says so in one sentence, and what to do."""

from __future__ import annotations

import subprocess
import sys

import pytest

from modules.lab.layout import ROOT

# The lab's mirror runs in its own container, where it is no part of `modules`.
PROGRAMS = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__main__")
    for path in ROOT.glob("modules/**/*.py")
    if "hostside" not in path.parts and "mirror" not in path.parts and '__name__ == "__main__"' in path.read_text()
)


@pytest.mark.parametrize("program", [*PROGRAMS, "modules.fleet.none"])
def test_every_program_says_what_its_python_lacks(program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-S", "-m", program, "--limit", "spark-1"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"{sys.executable} lacks what Tinderbox needs (pydantic, pyinfra, typer, yaml): run {ROOT}")
    assert line.endswith(f"/.venv/bin/python -S -m {program} --limit spark-1")


def test_programs_were_found() -> None:
    assert {"modules.converge", "modules.lab", "modules.importer", "modules.reporting"} <= set(PROGRAMS)


def test_with_its_packages_nothing_is_said() -> None:
    done = subprocess.run([sys.executable, "-c", "import modules"], cwd=ROOT, capture_output=True, check=True)
    assert done.stderr == b""
