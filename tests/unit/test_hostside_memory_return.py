"""A stop waits for the memory, and for no longer than makes sense."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from modules.hostside import memory_return
from modules.hostside.memory_return import WAIT_S, await_return, wanted
from modules.hostside.memory_room import Room

GIB = 1024**3


class Clock:
    """Time that passes only by sleeping; `memory`: seconds → bytes that are available."""

    def __init__(self, memory: Callable[[float], float]) -> None:
        self.now, self._memory = 0.0, memory

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def look(self) -> int:
        return round(self._memory(self.now))

    def wait(self, wish: int) -> int:
        return await_return(wish, self.look, self.sleep, lambda: self.now)


def test_memory_that_is_back_is_not_waited_for() -> None:
    clock = Clock(lambda _: 110 * GIB)
    assert (clock.wait(100 * GIB), clock.now) == (110 * GIB, 0)


def test_memory_that_comes_back_slowly_is_waited_for() -> None:
    clock = Clock(lambda at: 30 * GIB + at * 2 * GIB)
    assert clock.wait(100 * GIB) >= 100 * GIB
    assert clock.now == pytest.approx(35, abs=1)


def test_what_never_comes_back_is_not_waited_for_long() -> None:
    clock = Clock(lambda at: 30 * GIB + min(at, 5.0) * 2 * GIB)
    assert clock.wait(100 * GIB) == 40 * GIB
    assert 15 < clock.now < 25


def test_the_wait_ends_in_any_case() -> None:
    clock = Clock(lambda at: 30 * GIB + at * GIB / 10)
    clock.wait(100 * GIB)
    assert clock.now == pytest.approx(WAIT_S, abs=1)


@pytest.mark.parametrize(
    ("before", "wish"),
    [(f"{100 * GIB}\n", 99 * GIB), (f"{4 * GIB}\n", round(3.6 * GIB)), ("", 90 * GIB), ("x", 90 * GIB)],
)
def test_what_was_there_before_is_wanted_back_but_for_what_a_host_does_by_itself(
    tmp_path: Path, before: str, wish: int
) -> None:
    (tmp_path / "m.json").write_text(json.dumps({"needs": 90 * GIB}))
    (tmp_path / "before").write_text(before)
    assert wanted(tmp_path / "m.json", tmp_path / "before") == wish


def test_where_nothing_is_known_nothing_is_waited_for(tmp_path: Path) -> None:
    assert wanted(tmp_path / "m.json", tmp_path / "before") == 0


@pytest.mark.parametrize(
    ("there", "told"), [(119, "119.0 GiB are available again"), (80, "19.0 GiB of the memory have not come back")]
)
def test_the_program_tells_and_never_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], there: int, told: str
) -> None:
    before = tmp_path / "before"
    before.write_text(f"{100 * GIB}")
    monkeypatch.setattr(memory_return, "room", lambda _: Room(there * GIB, 0))
    monkeypatch.setattr(memory_return, "_STILL_S", 0.0)
    monkeypatch.setattr(sys, "argv", ["memory_return.py", str(tmp_path / "m.json"), str(before)])
    assert memory_return.main() == 0
    assert told in capsys.readouterr().out
    assert not before.exists()


def test_what_was_started_since_keeps_its_memory(tmp_path: Path) -> None:
    settings, run = tmp_path / "etc", tmp_path / "run"
    for folder in (settings, run):
        folder.mkdir()
    for name, needs in (("first", 60), ("second", 30), ("third", 5)):
        (settings / f"{name}.memory.json").write_text(json.dumps({"needs": needs * GIB}))
    for at, (name, before) in enumerate((("first", 110), ("second", 50), ("third", 20))):
        (run / f"{name}.before").write_text(f"{before * GIB}\n")
        os.utime(run / f"{name}.before", (at, at))
    assert wanted(settings / "first.memory.json", run / "first.before") == (110 - 30 - 5 - 1) * GIB
    # What was there before it is in its figure.
    assert wanted(settings / "third.memory.json", run / "third.before") == 19 * GIB
