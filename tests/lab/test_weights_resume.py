"""Whatever is killed while weights come, the next run fetches at most one chunk again."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator

import docker
import pytest

from tests.lab.lab_driver import Lab
from tests.lab.spread_driver import CHUNK, TOTAL, Spread, spread_of

pytestmark = [pytest.mark.lab, pytest.mark.long]
ONE, OTHER = "spark-1", "spark-2"
# The model comes in a quarter of a minute: long enough to kill something, short enough to wait for.
MBIT = 60


@pytest.fixture
def alone(lab: Lab) -> Iterator[Spread]:
    with spread_of(lab, "alone", OTHER) as found:
        yield found


@pytest.fixture
def pair(lab: Lab) -> Iterator[Spread]:
    with spread_of(lab, "pair", ONE, OTHER) as found:
        yield found


def of_the_job(spread: Spread) -> None:
    spread.kill(OTHER, "fetch_weights.py")


def of_the_host(spread: Spread) -> None:
    spread.lab.restart(OTHER)


def of_the_hub(spread: Spread) -> None:
    mirror = docker.from_env().containers.get(spread.lab.layout.mirror)
    mirror.kill()
    time.sleep(3)
    mirror.start()


@pytest.mark.parametrize("killing", [of_the_job, of_the_host, of_the_hub])
def test_what_came_from_the_hub_is_not_fetched_again(alone: Spread, killing: Callable[[Spread], None]) -> None:
    with alone.lab.shaped(OTHER, MBIT), alone.running() as child:
        held = alone.await_held(OTHER, TOTAL * 6 // 10)
        after = len(alone.lab.requests())
        killing(alone)
        said, _ = child.communicate(timeout=200)
    if killing is of_the_job:
        assert child.returncode == 1, said
        assert "weights gpt-oss-tiny: failed" in said
        assert "killed by SIGKILL" in said
        assert alone.run().rc == 0
    else:
        assert child.returncode == 0, said
    alone.whole(OTHER)
    # An answer that was cut stands in the journal with no bytes: what counts is what came after.
    came = alone.fetched(after)
    # Nor does one count that had left the hub to its end when the host went: the file's own rest was asked for again.
    resumed = {file for _, file, _, ranged in came if ranged is not None}
    came = [each for each in came if each[3] is not None or each[1] not in resumed]
    assert sum(size for _, _, size, _ in came) <= TOTAL - held + CHUNK
    assert any(ranged is not None for _, _, _, ranged in came)


def test_a_killed_client_leaves_all_at_work_and_the_next_run_picks_it_up(alone: Spread) -> None:
    before = len(alone.lab.requests())
    with alone.lab.shaped(OTHER, MBIT):
        with alone.running() as child:
            alone.await_held(OTHER, TOTAL * 6 // 10)
            child.send_signal(signal.SIGKILL)
            child.wait(10)
        run = alone.run()
    assert run.rc == 0, run.text
    alone.whole(OTHER)
    assert sum(size for _, _, size, _ in alone.fetched(before)) == TOTAL


def of_the_taker(spread: Spread) -> None:
    spread.kill(OTHER, "take_weights.py")


def of_the_takers_host(spread: Spread) -> None:
    spread.lab.restart(OTHER)


@pytest.mark.parametrize("killing", [of_the_taker, of_the_takers_host])
def test_what_came_from_a_peer_is_not_taken_again(pair: Spread, killing: Callable[[Spread], None]) -> None:
    assert pair.run(ONE).rc == 0
    with pair.running(limit_mbit=MBIT) as child:
        held = pair.await_held(OTHER, TOTAL * 6 // 10)
        killing(pair)
        said, _ = child.communicate(timeout=200)
    if killing is of_the_taker:
        assert child.returncode == 1, said
        assert "killed by SIGKILL" in said
        pair.nobody_listens()
        run = pair.run()
        assert run.rc == 0, run.text
    else:
        assert child.returncode == 0, said
        assert "the job was lost with its host; starting it again" in said
    pair.whole(OTHER)
    # The last process counted what it took: all that lay there when its predecessor was killed was not among it.
    assert 0 < pair.taken(OTHER) <= TOTAL - held + CHUNK


def of_the_seed(spread: Spread) -> None:
    spread.kill(ONE, "share_weights.py")


def of_the_seeds_host(spread: Spread) -> None:
    spread.lab.restart(ONE)


@pytest.mark.parametrize("killing", [of_the_seed, of_the_seeds_host])
def test_a_seed_that_dies_is_told_and_what_it_gave_is_kept(pair: Spread, killing: Callable[[Spread], None]) -> None:
    assert pair.run(ONE).rc == 0
    with pair.running(limit_mbit=MBIT) as child:
        held = pair.await_held(OTHER, TOTAL * 6 // 10)
        killing(pair)
        said, _ = child.communicate(timeout=300)
    assert child.returncode == 1, said
    assert "spark-2: tinderbox-lab/gpt-oss-tiny: no peer gave anything for 60 s" in said
    assert "Connected: none" in said
    run = pair.run()
    assert run.rc == 0, run.text
    pair.whole(OTHER)
    assert 0 < pair.taken(OTHER) <= TOTAL - held + CHUNK
    pair.nobody_listens()


def test_a_controller_that_dies_leaves_the_swarm_at_work_and_the_next_run_ends_it(pair: Spread) -> None:
    assert pair.run(ONE).rc == 0
    with pair.running(limit_mbit=MBIT) as child:
        pair.await_held(OTHER, TOTAL * 6 // 10)
        child.send_signal(signal.SIGKILL)
        child.wait(10)
    run = pair.run(limit_mbit=MBIT)
    assert run.rc == 0, run.text
    pair.whole(OTHER)
    assert TOTAL <= pair.taken(OTHER) < TOTAL * 1.02
    pair.nobody_listens()
