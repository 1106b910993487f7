"""What the steps of a build took, and what another build will take by that."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from modules.hostside.build_times import StepClock, Times, others_took, stages_of

DOCKERFILE = "ARG BASE=x\nFROM ${BASE} AS tools\nRUN a\nFROM tools AS kernels\nRUN b\nFROM tools\nRUN c\n"
# Of a first build: two stages side by side, of which one waits for the other without a word.
FIRST = (
    (0, "#4 [tools 1/2] FROM base"),
    (0, "#4 DONE 0.0s"),
    (0, "#5 [tools 2/2] RUN a"),
    (10, "#5 DONE 10.0s"),
    (10, "#6 [kernels 1/1] RUN b"),
    (10, "#7 [stage-2 1/2] RUN c"),
    (11, "#6 1.0 compiling"),
    (110, "#6 DONE 100.0s"),
    (111, "#7 101.0 compiling"),
    (160, "#7 DONE 150.0s"),
    (160, "#8 [stage-2 2/2] COPY d"),
    (161, "#8 DONE 1.0s"),
    (161, "#9 exporting to image"),
    (181, "#9 DONE 20.0s"),
)


def heard(*said: tuple[float, str]) -> StepClock:
    clock = StepClock()
    for at, line in said:
        clock.hear(line, at)
    return clock


def times(folder: Path, dockerfile: str = DOCKERFILE) -> Times:
    return Times.of(folder / "tiny.times.json", dockerfile)


@pytest.fixture
def known(tmp_path: Path) -> Times:
    """After the first build."""
    times(tmp_path).add(heard(*FIRST))
    return times(tmp_path)


def test_the_steps_share_the_time_of_the_clock_and_one_that_waits_has_none_of_it(known: Times) -> None:
    assert sum(known.known.values()) == pytest.approx(181)
    assert known.known["kernels 1/1"] == pytest.approx(99.5)
    assert known.known["stage-2 1/2"] == pytest.approx(50.5)
    assert known.known["writing the image"] == 20


def test_a_build_that_was_never_done_here_has_no_estimate_but_what_others_took(tmp_path: Path) -> None:
    clock = heard(*FIRST[:3])

    assert clock.left(times(tmp_path).known) is None
    assert others_took((26, 43), partial=False) == "others took 26 to 43 minutes"
    assert others_took((26, 43), partial=True) == "others took 26 to 43 minutes for all of it"
    assert others_took(None, partial=True) == ""


def test_the_same_build_again_has_left_what_it_has_not_done(known: Times) -> None:
    assert heard(*FIRST[:3]).left(known.known) == pytest.approx(181)
    assert heard(*FIRST[:4]).left(known.known) == pytest.approx(171)
    assert heard(*FIRST[:3], (5, "#5 5.0 still at it")).left(known.known) == pytest.approx(176)
    assert heard(*FIRST).left(known.known) == 0


def test_what_comes_from_the_cache_takes_no_time(known: Times) -> None:
    partial = heard(
        (0, "#4 [tools 1/2] FROM base"), (0, "#4 CACHED"), (0, "#5 [tools 2/2] RUN a"), (0, "#5 CACHED"),
        (0, "#6 [kernels 1/1] RUN b"), (0, "#6 CACHED"), (0, "#7 [stage-2 1/2] RUN c"),
    )  # fmt: skip

    assert partial.is_partial
    assert partial.left(known.known) == pytest.approx(50.5 + 1 + 20)


def test_a_step_that_takes_longer_than_last_time_is_not_owed_a_negative_time(known: Times) -> None:
    assert heard(*FIRST[:3], (500, "#5 500.0 still at it")).left(known.known) == pytest.approx(171)


def test_a_step_that_no_build_here_has_done_makes_the_end_unknown(known: Times) -> None:
    assert heard((0, "#4 [tools 1/3] FROM base"), (1, "#5 [tools 2/3] RUN more")).left(known.known) is None


def test_cached_steps_keep_their_figures_and_others_get_new_ones(known: Times, tmp_path: Path) -> None:
    known.add(heard((0, "#4 [tools 1/2] FROM base"), (0, "#4 CACHED"), (0, "#5 [tools 2/2] RUN a"), (3, "#5 DONE 3s")))

    again = times(tmp_path).known
    assert again["tools 2/2"] == 3
    assert again["tools 1/2"] == 0
    assert again["kernels 1/1"] == pytest.approx(99.5)


def test_failed_and_stopped_steps_are_no_measure(tmp_path: Path) -> None:
    times(tmp_path).add(
        heard((0, "#4 [tools 1/2] RUN a"), (0, "#5 [kernels 1/1] RUN b"), (9, "#4 ERROR: x"), (9, "#5 CANCELED"))
    )

    assert times(tmp_path).known == {}


def test_steps_of_a_dockerfile_that_has_changed_are_forgotten(known: Times, tmp_path: Path) -> None:
    without_kernels = times(tmp_path, "FROM base AS tools\nRUN a\nFROM tools\nRUN c\n")
    assert set(without_kernels.known) == {"tools 1/2", "tools 2/2", "writing the image"}

    known.add(heard((0, "#4 [tools 1/3] FROM base"), (1, "#4 DONE 1s"), (1, "#5 [tools 2/3] RUN a"), (2, "#5 DONE 1s")))
    again = times(tmp_path).known
    assert {name for name in again if name.startswith("tools")} == {"tools 1/3", "tools 2/3"}
    assert "kernels 1/1" in again


def test_a_single_stage_has_no_name_or_the_first_number() -> None:
    assert {"", "stage-0"} <= stages_of("FROM base\nRUN a\n")
    assert stages_of("FROM base AS a\nFROM a\n") == {"a", "stage-1", "writing the image"}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"steps": 3}'])
def test_a_file_that_is_none_is_no_measure(tmp_path: Path, text: str) -> None:
    (tmp_path / "tiny.times.json").write_text(text)

    assert times(tmp_path).known == {}


def test_the_file_is_whole_json(known: Times) -> None:
    assert set(json.loads(known.file.read_text())) == {"steps"}
