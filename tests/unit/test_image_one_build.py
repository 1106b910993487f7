"""One build at a time, and who waits knows for which."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from modules.hostside.one_build import alone
from modules.hostside.progress import Progress


class Told(Progress):
    def __init__(self) -> None:
        super().__init__()
        self.steps: list[str] = []
        self.first = threading.Event()

    def report(self, step: str, *_: object, **__: object) -> None:
        self.steps.append(step)
        self.first.set()


def test_who_is_alone_does_not_say_that_it_waits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = Told()

    for _ in range(2):
        with alone("tinderbox/a:1", told, tmp_path / "lock"):
            assert (tmp_path / "lock").read_text() == "tinderbox/a:1"

    assert told.steps == []
    assert capsys.readouterr().out == ""


def test_the_second_waits_and_says_for_which(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told, order = Told(), []

    def second() -> None:
        with alone("tinderbox/b:2", told, tmp_path / "lock"):
            order.append("second")

    with alone("tinderbox/a:1", Told(), tmp_path / "lock"):
        thread = threading.Thread(target=second)
        thread.start()
        assert told.first.wait(10)
        order.append("first")
    thread.join(10)

    assert order == ["first", "second"]
    assert set(told.steps) == {"waiting for the build of tinderbox/a:1 to end"}
    assert capsys.readouterr().out == "waiting for the build of tinderbox/a:1 to end\n"


def test_a_build_that_failed_lets_the_next_one_in(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), alone("a", Told(), tmp_path / "lock"):
        raise RuntimeError

    with alone("b", Told(), tmp_path / "lock"):
        pass
