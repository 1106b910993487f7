from __future__ import annotations

import io
from itertools import pairwise
from typing import Any

import pytest

from modules.reporting.progress import Board, Doing, can_draw, duration, size, wording


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (59.9, "59s"), (60, "1m00s"), (187, "3m07s"), (3600, "1h00m"), (7500, "2h05m")]
)
def test_duration_is_short_and_never_rounds_up(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (65.25 * 1024**3, "65.2 GiB"), (1024**5, "1024.0 TiB")],
)
def test_size_takes_the_largest_unit_that_it_fills(count: float, text: str) -> None:
    assert size(count) == text


def test_bytes_are_told_with_share_rate_and_time_left() -> None:
    line = wording(
        Doing(
            "weights", "fetching", done=25 * 1024**2, total=100 * 1024**2, unit="bytes", rate=5 * 1024**2, elapsed_s=5
        )
    )

    assert line == "weights: 25.0 MiB of 100.0 MiB (25 %) · 5.0 MiB/s · 15s left · 5s · fetching"


def test_bytes_without_a_known_end_are_told_without_one() -> None:
    assert (
        wording(Doing("weights", "fetching", done=2048, unit="bytes", elapsed_s=1))
        == "weights: 2.0 KiB · 1s · fetching"
    )


def test_a_stalled_download_claims_no_time_left() -> None:
    assert "left" not in wording(Doing("weights", "fetching", done=1, total=2, unit="bytes", rate=0, elapsed_s=9))


def test_steps_are_counted() -> None:
    assert (
        wording(Doing("image", "RUN make", done=3, total=9, unit="steps", elapsed_s=61))
        == "image: 3/9 steps · 1m01s · RUN make"
    )


@pytest.mark.parametrize(
    ("left_s", "text"), [(2, "5 s"), (8, "10 s"), (57, "55 s"), (58, "1 min"), (700, "12 min"), (7000, "117 min")]
)
def test_an_estimate_is_told_roughly(left_s: float, text: str) -> None:
    line = wording(Doing("image", "RUN make", 3, 9, "steps", elapsed_s=61, left_s=left_s))

    assert line == f"image: 3/9 steps · about {text} left · 1m01s · RUN make"


def test_words_stand_before_the_step() -> None:
    line = wording(Doing("image", "RUN make", elapsed_s=61, note="others took 26 to 43 minutes"))

    assert line == "image: 1m01s · others took 26 to 43 minutes · RUN make"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_plain_lines_of_a_host_keep_their_distance_and_other_hosts_have_their_own() -> None:
    told: list[Any] = []
    clock = Clock()
    board = Board(plain=lambda host, line: told.append((clock.now, host)), clock=clock)

    for clock.now in (0.0, 1.6, 3.2, 4.8, 6.4):
        board.update("a", Doing("job", done=clock.now))
    board.update("b", Doing("job"))

    assert told == [(0.0, "a"), (3.2, "a"), (6.4, "a"), (6.4, "b")]


def test_a_step_in_which_only_the_clock_moves_is_told_ever_more_seldom_until_it_moves_again() -> None:
    told: list[Any] = []
    clock = Clock()
    board = Board(plain=lambda host, line: told.append((clock.now, line)), clock=clock)

    for look in range(40):
        clock.now = float(look)
        board.update("a", Doing("image", "RUN make", done=3 if look < 35 else 4, total=9, elapsed_s=look))

    assert [when for when, _ in told] == [0, 3, 9, 21, 35, 38]
    assert told[-2][1].startswith("image: 4/9")


def test_looks_two_seconds_apart_leave_no_gap_over_five_seconds() -> None:
    told: list[Any] = []
    clock = Clock()
    board = Board(plain=lambda host, line: told.append(clock.now), clock=clock)

    for look in range(20):
        clock.now = look * 2.0
        board.update("a", Doing("job", done=look))

    assert max(after - before for before, after in pairwise(told)) <= 5


def test_a_job_that_comes_after_another_is_told_at_once() -> None:
    told: list[Any] = []
    clock = Clock()
    board = Board(plain=lambda host, line: told.append(line), clock=clock)

    board.update("a", Doing("first"))
    board.done("a")
    board.update("a", Doing("second"))

    assert told == ["first: 0s", "second: 0s"]


def test_all_hosts_share_one_live_line_that_is_wiped_when_the_last_is_done() -> None:
    stream = io.StringIO()
    board = Board(plain=lambda host, line: None, stream=stream, live=True)

    board.update("spark-2", Doing("job", "x"))
    board.update("spark-1", Doing("job", "y"))
    assert "spark-1 job: 0s · y | spark-2 job: 0s · x" in stream.getvalue()
    assert "\n" not in stream.getvalue()

    board.done("spark-1")
    board.done("spark-2")
    assert stream.getvalue().endswith("\r\033[K\r\033[K")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("spinner", "draws"), [("off", True), ("on", False), (None, False)])
def test_the_live_line_gives_way_to_pyinfras_spinner(
    monkeypatch: pytest.MonkeyPatch, spinner: str | None, draws: bool
) -> None:
    monkeypatch.delenv("PYINFRA_PROGRESS", raising=False)
    if spinner is not None:
        monkeypatch.setenv("PYINFRA_PROGRESS", spinner)

    assert can_draw(Terminal()) is draws
    assert can_draw(io.StringIO()) is False
