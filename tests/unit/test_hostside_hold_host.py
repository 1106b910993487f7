"""Who is ended for what a run left behind: the process that holds the host, and never one that has its number since."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from modules.hostside import hold_host
from modules.hostside.hold_host import began, read, taken, write

LOCK = "tinderbox-office 0815 8:1"
PROGRAM = Path(hold_host.__file__)


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    return tmp_path / "run" / "run.lock"


@pytest.fixture
def file(lock: Path) -> Iterator[int]:
    lock.parent.mkdir()
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT)
    yield descriptor
    os.close(descriptor)


@pytest.fixture
def holder(tmp_path: Path, lock: Path) -> Iterator[subprocess.Popen[str]]:
    """The real program, which holds the host for a run of that lock."""
    program = tmp_path / "hold_host.py"
    program.write_text(PROGRAM.read_text().replace("/run/tinderbox/run.lock", str(lock)))
    words = [sys.executable, str(program), json.dumps({"lock": LOCK, "user": "anna"})]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert json.loads(child.stdout.readline()) == {"holds": True}
        yield child
        child.kill()


def test_what_the_same_controller_left_behind_is_ended(file: int, holder: subprocess.Popen[str]) -> None:
    assert read(file)["began"] == began(holder.pid) != ""
    assert taken(file, {"lock": LOCK}, 10)
    assert holder.wait(10) < 0


@pytest.mark.parametrize("known", [{"began": "1"}, {"lock": "another"}, {"here": "none"}, {"here": None}])
def test_a_process_that_is_not_that_one_is_left_alone(
    file: int, holder: subprocess.Popen[str], known: dict[str, Any]
) -> None:
    """Its number is that of the holder, but it began at another time, or holds for another run."""
    noted = {**read(file), **known}
    write(file, noted)
    assert not taken(file, {"lock": noted["lock"]}, 0.3)
    assert holder.poll() is None


def test_a_number_that_a_strangers_process_has_by_now_ends_nobody(file: int, holder: subprocess.Popen[str]) -> None:
    with subprocess.Popen(["sleep", "60"]) as stranger:
        try:
            # As an earlier version noted it, and as this one does.
            for more in ({}, {"began": began(stranger.pid)}):
                write(file, {"lock": LOCK, "here": stranger.pid, **more})
                assert not taken(file, {"lock": LOCK}, 0.3)
                assert stranger.poll() is None
        finally:
            stranger.kill()
    assert holder.poll() is None
