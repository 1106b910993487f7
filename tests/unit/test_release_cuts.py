"""A run that is cut at any point, and the one after it, come to the same as one that nobody has disturbed."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from modules.hostside import ledger
from tests.unit.fake_systemd import STARTING, Cut, Machine, machines

Make = Callable[..., Machine]
Act = Callable[[Machine], object]


def wants(release: str, *, forced: bool = False) -> Act:
    return lambda machine: machine.run(release, forced=forced)


def rolls_back(target: str, instead: str) -> Act:
    """As deploys/rollback.py does; where it was cut, an operator does it again."""
    return lambda machine: machine.program(target, "--instead", instead, "--by", "me")


def upgrades(**parts: str) -> Act:
    """As an operator's apt does."""

    def act(machine: Machine) -> None:
        machine.versions = {**machine.versions, **{name.replace("_", " "): now for name, now in parts.items()}}

    return act


# What is on the host, what is done to it, and which release then serves. `b` gets ready, `x` never, `s` is too slow.
SCENES: dict[str, tuple[tuple[Act, ...], Act, str | None]] = {
    "the first release": ((), wants("b"), "b"),
    "the first release, never ready": ((), wants("x"), None),
    "the first release, too slow": ((), wants("s"), "s"),
    "a good one after a good one": ((wants("a"),), wants("b"), "b"),
    "never ready after a good one": ((wants("a"),), wants("x"), "a"),
    "too slow after a good one": ((wants("a"),), wants("s"), "a"),
    "never ready after one that is too slow": ((wants("s"),), wants("x"), "s"),
    "tried again, and never ready again": ((wants("a"), wants("x")), wants("x", forced=True), "a"),
    "tried again, and too slow again": ((wants("a"), wants("s")), wants("s", forced=True), "a"),
    "another one after one that failed": ((wants("a"), wants("x")), wants("b"), "b"),
    "the former one again": ((wants("a"), wants("b")), wants("a"), "a"),
    "another driver": ((wants("a"), upgrades(driver="580.2")), wants("a"), "a"),
    "another toolkit": ((wants("a"), upgrades(CUDA_toolkit="13.0.2")), wants("a"), "a"),
    "another driver, and another release": ((wants("a"), upgrades(driver="580.2")), wants("b"), "b"),
    "rolled back": ((wants("a"), wants("b")), rolls_back("a", "b"), "a"),
}


@pytest.fixture(autouse=True, params=[1, 7, 1000], ids=lambda calls: f"{calls} events a second")
def clock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds that pass between events, within one run and not in another, decide nothing."""
    count = itertools.count()
    monkeypatch.setattr(ledger, "now", lambda: f"2026-01-01T00:00:{next(count) // request.param:06}Z")


@pytest.fixture
def machine_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Make:
    return machines(monkeypatch, tmp_path)


def prepared(make: Make, scene: str, *, gated: bool) -> Machine:
    machine = make({"a", "b", "s"}, {"s"})
    machine.gated = gated
    for act in SCENES[scene][0]:
        act(machine)
    machine.effects = 0
    return machine


CASES = [(scene, True) for scene in SCENES] + [(scene, False) for scene in SCENES if "slow" not in scene]


@pytest.mark.parametrize(
    ("scene", "gated"), CASES, ids=[f"{scene}, {'' if gated else 'un'}gated" for scene, gated in CASES]
)
def test_a_cut_anywhere_comes_to_the_same_in_the_next_run(
    machine_of: Make,
    scene: str,
    gated: bool,
) -> None:
    _, act, serves = SCENES[scene]
    whole = prepared(machine_of, scene, gated=gated)
    act(whole)
    wanted = whole.outcome()
    assert whole.wrong == []
    assert whole.engine == serves
    effects = whole.effects
    # Without a start there is less to cut.
    assert effects >= (2 if "toolkit" in scene else 8)
    for cut in range(1, effects + 1):
        # What systemd has been told to start goes on meanwhile, or is still on its way when the next run looks.
        for time_passes in (True, False):
            machine = prepared(machine_of, scene, gated=gated)
            cut_in(machine, act, cut)
            underway = machine.state == STARTING
            if time_passes:
                machine.pass_time()
            act(machine)
            assert machine.wrong == [], f"cut {cut} of {effects}"
            assert machine.outcome() == wanted, f"cut {cut} of {effects}, time passes: {time_passes}"
            if not underway:
                break


def cut_in(machine: Machine, act: Act, cut: int) -> None:
    """Have it done, but end it right before an effect."""
    machine.cut_at = cut
    with pytest.raises(Cut):
        act(machine)
    machine.cut_at = -1


@pytest.mark.parametrize("scene", ["never ready after a good one", "too slow after a good one", "rolled back"])
def test_another_wish_after_a_cut_is_met_and_nothing_bad_is_called_good(machine_of: Make, scene: str) -> None:
    whole = prepared(machine_of, scene, gated=True)
    SCENES[scene][1](whole)
    for cut in range(1, whole.effects + 1):
        machine = prepared(machine_of, scene, gated=True)
        cut_in(machine, SCENES[scene][1], cut)
        machine.pass_time()
        machine.sound.add("c")
        # A wish that is refused ends what was begun; one for something new is met.
        machine.run("b" if scene == "rolled back" else "x")
        assert machine.run("c") == 0, f"cut {cut}"
        assert machine.wrong == [], f"cut {cut}"
        found = machine.outcome()
        assert (found["current"], found["last good"], found["engine"], found["pending"]) == ("c", "c", "c", None)


def test_the_cuts_are_seen(machine_of: Make) -> None:
    """The fake does find a second engine, and a bad release that is called good."""
    machine = machine_of({"a"})
    machine.run("a")
    machine.systemctl("start")
    machine.ledger.mark("a", "good")
    machine.sound.clear()
    machine.look_for_wrongs()
    assert machine.wrong == ["a second engine", "a is marked good"]
