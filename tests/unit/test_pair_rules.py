"""What a member of a service that spans hosts does next, by what it sees."""

from __future__ import annotations

from dataclasses import replace

import pytest

from modules.hostside.pair_rules import (
    DOWN,
    FAILED,
    PAUSES_S,
    RESTARTS,
    SKIPPED,
    UP,
    HeadView,
    Order,
    Report,
    Unit,
    WorkerView,
    head_step,
    unready,
    worker_step,
)

ACTIVE = Unit("active", "running", "success", "g1", enabled=True)
STARTING = replace(ACTIVE, active="activating", sub="start-post")
WAITING = replace(ACTIVE, active="activating", sub="condition")
ENDING = replace(ACTIVE, active="deactivating", sub="stop-post", result="exit-code")
BROKEN = replace(ACTIVE, active="failed", sub="failed", result="exit-code")
STOPPED = Unit("inactive", "dead", "success", "g1", enabled=True)
LEFT_OUT = replace(STOPPED, result=SKIPPED)

RUNS = Report(current="r1", generation="g1", ended=False, state=UP, holds=("r1",))
IDLE = replace(RUNS, ended=True, generation="g0", state=DOWN)
ENDED = replace(RUNS, ended=True, state=FAILED, why="memory-gate: refused")
HEAD = HeadView(ACTIVE, "r1", ("spark-2",), {"spark-2": RUNS})

GOES_ON = Order("r1", spans=True, wanted=True, state=UP, generation="g1", ready=True)
WORKER = WorkerView(ACTIVE, GOES_ON, current="r1", spans=True, generation="g1", holds=("r1", "r2"))


@pytest.mark.parametrize(
    ("unit", "state"),
    [
        (ACTIVE, UP),
        (STARTING, UP),
        (WAITING, DOWN),
        (ENDING, FAILED),
        (BROKEN, FAILED),
        (STOPPED, DOWN),
        (LEFT_OUT, DOWN),
    ],
)
def test_a_unit_is_up_down_or_failed(unit: Unit, state: str) -> None:
    assert unit.state == state


@pytest.mark.parametrize(
    ("view", "do", "why"),
    [
        (HEAD, "", ""),
        (replace(HEAD, workers=()), "", ""),
        (replace(HEAD, reports={"spark-2": ENDED}), "kill", "the part on spark-2 has ended: memory-gate: refused"),
        (replace(HEAD, lost=("spark-2",)), "kill", "spark-2 is not reached any more"),
        # The program here has just begun, and has heard nobody yet.
        (replace(HEAD, reports={}), "", ""),
        # Its worker starts within the second.
        (replace(HEAD, unit=STARTING, reports={"spark-2": IDLE}), "", ""),
        (replace(HEAD, reports={"spark-2": IDLE}), "kill", "spark-2 does not run this start's part"),
        (replace(HEAD, unit=ENDING, reports={"spark-2": ENDED}), "", ""),
    ],
)
def test_a_head_that_runs_ends_when_a_part_is_gone(view: HeadView, do: str, why: str) -> None:
    assert (head_step(view).do, head_step(view).why) == (do, why)


FELL = replace(HEAD, unit=BROKEN, reports={"spark-2": IDLE}, ended_s=PAUSES_S[0])


@pytest.mark.parametrize(
    ("view", "do"),
    [
        (FELL, "start"),
        (replace(FELL, ended_s=PAUSES_S[0] - 1), ""),
        (replace(FELL, restarts=1, ended_s=PAUSES_S[0]), ""),
        (replace(FELL, restarts=1, ended_s=PAUSES_S[1]), "start"),
        (replace(FELL, restarts=RESTARTS, ended_s=1e6), "give up"),
        (replace(FELL, lost=("spark-2",), reports={}), ""),
        # It is still ending what ran.
        (replace(FELL, reports={"spark-2": replace(RUNS, generation="g0")}), ""),
        (replace(FELL, reports={"spark-2": replace(IDLE, current="r0")}), ""),
        (replace(FELL, reports={"spark-2": replace(IDLE, holds=())}), ""),
        (replace(FELL, locked=True), ""),
        (replace(FELL, unit=replace(BROKEN, job=True)), ""),
        # By an operator.
        (replace(FELL, unit=replace(BROKEN, enabled=False)), ""),
        (replace(FELL, unit=STOPPED), ""),
        # At a boot the others were not there: neither a failure, nor counted as one.
        (replace(FELL, unit=LEFT_OUT, restarts=RESTARTS, ended_s=0), "start"),
        (replace(FELL, unit=LEFT_OUT, reports={}), ""),
    ],
)
def test_a_head_that_fell_starts_when_all_are_there_and_not_for_ever(view: HeadView, do: str) -> None:
    assert head_step(view).do == do


def test_two_workers_must_both_be_there() -> None:
    view = replace(FELL, workers=("spark-2", "spark-3"))
    assert head_step(view).do == ""
    assert unready(view) == "spark-3 is not connected"
    both = replace(view, reports={"spark-2": IDLE, "spark-3": IDLE})
    assert head_step(both).do == "start"


@pytest.mark.parametrize(
    ("view", "do"),
    [
        (WORKER, ""),
        (replace(WORKER, order=None), "kill"),
        (replace(WORKER, order=None, spans=False), ""),
        (replace(WORKER, order=None, unit=BROKEN), ""),
        (replace(WORKER, order=replace(GOES_ON, generation="", state=FAILED)), "kill"),
        (replace(WORKER, order=replace(GOES_ON, generation="", state=DOWN)), "stop"),
        (replace(WORKER, order=replace(GOES_ON, generation="g2")), "stop"),
        (replace(WORKER, order=replace(GOES_ON, release="r2")), "stop"),
        # What is no engine over several hosts, before and after, is nobody else's.
        (replace(WORKER, spans=False, order=replace(GOES_ON, spans=False)), ""),
        (replace(WORKER, unit=ENDING, order=replace(GOES_ON, generation="")), ""),
    ],
)
def test_a_part_that_runs_does_so_for_the_heads_start_only(view: WorkerView, do: str) -> None:
    assert worker_step(view).do == do


RESTS = replace(WORKER, unit=STOPPED)


@pytest.mark.parametrize(
    ("view", "do"),
    [
        (replace(RESTS, order=replace(GOES_ON, generation="g2")), "start"),
        # Once for each start: the head ends when it hears that it has ended here.
        (RESTS, ""),
        (replace(RESTS, order=replace(GOES_ON, release="r2", generation="")), "follow"),
        (replace(RESTS, order=replace(GOES_ON, release="r2", generation="g2")), "follow"),
        (replace(RESTS, order=replace(GOES_ON, release="r3")), "disable"),
        (replace(RESTS, unit=replace(STOPPED, enabled=False), order=replace(GOES_ON, release="r3")), ""),
        (replace(RESTS, order=replace(GOES_ON, wanted=False, generation="")), "disable"),
        (replace(RESTS, unit=replace(STOPPED, enabled=False), order=replace(GOES_ON, generation="g2")), "enable"),
        (replace(RESTS, order=replace(GOES_ON, generation="", gave_up=True)), "fail"),
        (replace(RESTS, unit=BROKEN, order=replace(GOES_ON, generation="", gave_up=True)), ""),
        (replace(RESTS, locked=True, order=replace(GOES_ON, generation="g2")), ""),
        (replace(RESTS, unit=replace(STOPPED, job=True), order=replace(GOES_ON, generation="g2")), ""),
        # Back to what each host had for itself.
        (replace(RESTS, order=replace(GOES_ON, release="r2", spans=False)), "follow"),
        (replace(RESTS, current="r2", spans=False, order=replace(GOES_ON, release="r2", spans=False)), ""),
    ],
)
def test_a_part_that_rests_follows_the_head(view: WorkerView, do: str) -> None:
    assert worker_step(view).do == do
