"""The load guard: when it acts, on real processes, and that it ends with what started it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from modules.hostside import await_ready, load_guard
from modules.hostside.load_guard import STOPPED, Dropper, Engine, Marks, watch
from modules.hostside.load_stops import load_stops, note_load_stop
from modules.hostside.memory_room import Room

GIB = 1024**3
MARKS = Marks(pressure=8 * GIB, stop=2 * GIB)
PROGRAM = str(Path(load_guard.__file__))


@pytest.fixture
def engine() -> Iterator[tuple[Engine, subprocess.Popen[bytes]]]:
    """A process that stands for the container's first one."""
    with subprocess.Popen(["sleep", "60"]) as process:
        handle = os.pidfd_open(process.pid)
        yield Engine("c", [], handle), process
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        os.close(handle)


def test_an_engine_that_takes_too_much_is_killed_and_that_is_said(
    engine: tuple[Engine, subprocess.Popen[bytes]], capsys: pytest.CaptureFixture[str]
) -> None:
    rooms = [Room(40 * GIB, 20 * GIB), Room(3 * GIB, GIB), Room(GIB, GIB)]
    one, process = engine
    assert watch(one, MARKS, lambda: None, lambda _: rooms.pop(0), lambda _: None) == STOPPED
    assert process.wait(5) == -signal.SIGKILL
    assert capsys.readouterr().out == (
        "load-guard: stopped the engine: it was loading, and 1.00 GiB of memory were left, less than the 2.00 GiB "
        "without which this host stops answering\n"
    )


def test_cache_in_the_way_is_given_back_and_the_engine_goes_on(
    engine: tuple[Engine, subprocess.Popen[bytes]],
) -> None:
    one, process = engine
    pressed, rooms = [], [Room(40 * GIB, 9 * GIB), Room(40 * GIB, 7 * GIB), Room(7 * GIB, 7 * GIB)]

    def look(_: list[Path]) -> Room:
        if len(rooms) == 1:
            process.kill()
            process.wait()
        return rooms.pop(0)

    assert watch(one, MARKS, lambda: pressed.append(len(rooms)), look, lambda _: None) == 0
    # Once: before there was enough, and afterwards nothing was left to give back.
    assert pressed == [1]


def test_without_an_engine_yet_there_is_nothing_to_kill() -> None:
    looks = [Room(GIB, GIB)] * 3

    def look(_: list[Path]) -> Room:
        if not looks:
            raise TimeoutError
        return looks.pop()

    with pytest.raises(TimeoutError):
        watch(Engine("c", []), MARKS, lambda: None, look, lambda _: None)


def test_an_engine_that_has_ended_ends_the_watch(engine: tuple[Engine, subprocess.Popen[bytes]]) -> None:
    one, process = engine
    process.kill()
    process.wait()
    assert watch(one, MARKS, lambda: None, lambda _: pytest.fail("there is nothing to look at")) == 0


def test_the_engine_is_found_once_docker_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[str | None] = [None, "0\n", f"{os.getpid()}\n"]
    monkeypatch.setattr(load_guard, "run", lambda *_: answers.pop(0))
    monkeypatch.setattr(load_guard, "cgroups_of", lambda pid: [Path(f"/groups/{pid}")])
    monkeypatch.setattr(time, "sleep", lambda _: None)
    one = Engine("c", [Path("/own")])
    one.find()
    assert one.handle is not None
    assert one.bounds == [Path("/own"), Path(f"/groups/{os.getpid()}")]
    os.close(one.handle)


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ('{"reserve": 8589934592}', MARKS),
        ('{"reserve": 1073741824}', Marks(GIB, GIB // 4)),
        ("{}", MARKS),
        ('{"reserve": 0}', MARKS),
        ("nothing", MARKS),
    ],
)
def test_its_marks_come_from_the_plans_reserve(tmp_path: Path, text: str, marks: Marks) -> None:
    (tmp_path / "m.json").write_text(text)
    assert Marks.of(tmp_path / "m.json") == marks


def test_giving_cache_back_is_said_once_in_a_while(capsys: pytest.CaptureFixture[str]) -> None:
    dropper = Dropper(lambda: True)
    for _ in range(3):
        dropper.once()
    assert capsys.readouterr().out.count("gave the page cache back") == 1
    refused = Dropper(lambda: False)
    refused.once()
    assert capsys.readouterr().out == ""


@contextlib.contextmanager
def docker_of(folder: Path, pid: int) -> Iterator[dict[str, str]]:
    """An environment whose docker has the process as the container's first one."""
    (folder / "docker").write_text(f"#!/bin/sh\necho {pid}\n")
    (folder / "docker").chmod(0o755)
    yield os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"}


def test_the_program_ends_with_who_started_it(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text('{"reserve": 1}')
    starter = (
        "import subprocess, sys, os, time; "
        f"p = subprocess.Popen([sys.executable, {PROGRAM!r}, 'c', {str(tmp_path / 'm.json')!r}, "
        "'--parent', str(os.getpid())]); print(p.pid, flush=True); time.sleep(60)"
    )
    with docker_of(tmp_path, 0) as environment:
        parent = subprocess.Popen([sys.executable, "-c", starter], stdout=subprocess.PIPE, text=True, env=environment)
        assert parent.stdout is not None
        guard = int(parent.stdout.readline())
        parent.kill()
        parent.wait()
        parent.stdout.close()
    deadline = time.monotonic() + 20
    while Path(f"/proc/{guard}").exists() and "Z" not in Path(f"/proc/{guard}/stat").read_text().split():
        assert time.monotonic() < deadline, "the guard outlived the start"
        time.sleep(0.05)


def test_the_program_stops_a_real_engine_for_a_real_want(
    tmp_path: Path, engine: tuple[Engine, subprocess.Popen[bytes]]
) -> None:
    # More than any machine has: a quarter of it is never available.
    (tmp_path / "m.json").write_text(json.dumps({"reserve": 2**60}))
    _, process = engine
    # The page cache of the machine that tests run on is left alone.
    harmless = (
        f"import sys; sys.path.insert(0, {str(Path(PROGRAM).parent)!r}); import load_guard; "
        "load_guard.drop_page_cache = lambda **_: False; sys.exit(load_guard.main())"
    )
    with docker_of(tmp_path, process.pid) as environment:
        words = [sys.executable, "-c", harmless, "c", str(tmp_path / "m.json"), "--parent", str(os.getpid())]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == STOPPED, done.stderr
    assert process.wait(5) == -signal.SIGKILL
    assert "load-guard: stopped the engine" in done.stdout


@pytest.mark.parametrize(
    ("status", "told", "count"), [(STOPPED, "the load guard stopped it", 2), (0, "the server has ended", 0)]
)
def test_await_ready_tells_whose_doing_the_end_was_and_counts_the_guards(
    status: int, told: str, count: int, tmp_path: Path
) -> None:
    (tmp_path / "ledger/s").mkdir(parents=True)
    for _ in range(2):
        with subprocess.Popen([sys.executable, "-c", f"raise SystemExit({status})"]) as guard:
            assert await_ready.why_gone(guard, lambda: note_load_stop("s", tmp_path)).startswith(told)
    assert load_stops("s", tmp_path) == count
    assert await_ready.why_gone(None) == "the server has ended"


def test_a_stop_that_can_not_be_counted_is_told_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "ledger").write_text("in the way")
    with subprocess.Popen([sys.executable, "-c", f"raise SystemExit({STOPPED})"]) as guard:
        told = await_ready.why_gone(guard, lambda: note_load_stop("s", tmp_path))
    assert told.startswith("the load guard stopped it")
    assert load_stops("s", tmp_path) == 0
