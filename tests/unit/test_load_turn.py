"""One engine of a host loads at a time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from modules.hostside.load_turn import Order, Turn

NAMES = ("high", "middle", "low")
Units = dict[str, tuple[str, str, str]]
"""Service → ActiveState, SubState, InvocationID."""


class Host:
    """Units that stand as they are told to; time passes only by waiting."""

    def __init__(self, folder: Path) -> None:
        self.run, self.now, self.told = folder, 0.0, list[str]()
        self.units: Units = dict.fromkeys(NAMES, ("inactive", "dead", ""))
        self.then: Callable[[float], None] = lambda _: None

    def state(self, unit: str) -> dict[str, str]:
        name = unit.removeprefix("tinderbox-").removesuffix(".service")
        return dict(zip(("ActiveState", "SubState", "InvocationID"), self.units[name], strict=True))

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.then(self.now)

    def turn(self, service: str, wait_s: float = 600) -> Turn:
        return Turn(service, NAMES, wait_s, self.run, self.state, self.sleep, lambda: self.now)

    def starts(self, service: str, step: str = "start-pre", invocation: str | None = None) -> None:
        self.units[service] = ("activating", step, invocation or f"{service}-1")

    def takes(self, service: str, wait_s: float = 600) -> str | None:
        return self.turn(service, wait_s).take(f"{service}-1", self.told.append)

    def holder(self) -> str:
        return str(json.loads((self.run / "loading.json").read_text())["service"])


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_who_is_alone_in_starting_loads_at_once(host: Host) -> None:
    host.starts("low")
    assert host.takes("low") is None
    assert (host.now, host.told, host.holder()) == (0, [], "low")


def test_one_that_loads_is_waited_for_by_every_other(host: Host) -> None:
    host.starts("low")
    host.takes("low")
    host.starts("low", "start-post")

    def ready_at_40(now: float) -> None:
        if now >= 40:
            host.units["low"] = ("active", "running", "low-1")

    host.then = ready_at_40
    host.starts("high")
    assert host.takes("high") is None
    assert (host.now, host.holder()) == (40, "high")
    # Said once, and again after half a minute.
    assert host.told == ["waiting for service low, which loads: one engine loads at a time"] * 2


@pytest.mark.parametrize(
    "now",
    [
        ("active", "running", "low-1"),
        ("failed", "failed", "low-1"),
        ("inactive", "dead", ""),
        # Between two attempts.
        ("activating", "auto-restart", "low-1"),
        # Another start of it, which has no turn yet.
        ("activating", "start-pre", "low-2"),
    ],
)
def test_a_note_of_a_start_that_is_over_holds_nobody_up(host: Host, now: tuple[str, str, str]) -> None:
    host.starts("low")
    host.takes("low")
    host.units["low"] = now
    host.starts("high")
    assert host.takes("high") is None
    assert host.now == 0


def test_of_two_that_start_at_once_the_higher_priority_goes_first(host: Host) -> None:
    host.starts("middle")
    host.starts("low")

    def middle_goes(now: float) -> None:
        host.units["middle"] = ("active", "running", "middle-1") if now >= 5 else host.units["middle"]

    host.then = middle_goes
    assert host.takes("low") is None
    assert host.now == 5
    assert host.told == ["waiting for service middle, which starts before this one: one engine loads at a time"]


def test_the_higher_one_does_not_wait_for_one_that_waits(host: Host) -> None:
    host.starts("middle")
    host.starts("low")
    assert host.takes("middle") is None
    assert host.now == 0


def test_one_that_gives_its_memory_back_is_waited_for(host: Host) -> None:
    host.units["high"] = ("deactivating", "stop-post", "high-1")
    host.then = lambda now: host.units.update(high=("inactive", "dead", "")) if now >= 3 else None
    host.starts("low")
    assert host.takes("low") is None
    assert host.now == 3


def test_the_wait_is_bounded_and_says_for_whom_it_was(host: Host) -> None:
    host.starts("high")
    host.takes("high")
    host.starts("low")
    assert host.takes("low", wait_s=120) == "service high, which loads"
    assert host.now == 120
    assert host.holder() == "high"


def test_a_stop_waits_for_one_that_loads_and_for_nobody_else(host: Host) -> None:
    host.starts("middle")
    assert host.turn("low").await_quiet(host.told.append) is None
    assert host.now == 0
    host.takes("middle")
    host.then = lambda now: host.units.update(middle=("active", "running", "middle-1")) if now >= 7 else None
    assert host.turn("low").await_quiet(host.told.append) is None
    assert host.now == 7


def test_the_file_of_services_says_order_and_bounds(tmp_path: Path) -> None:
    file = tmp_path / "services.json"
    assert Order.read(file) == Order()
    file.write_text('{"services": ["one"]}')
    assert Order.read(file).names == ()
    file.write_text('{"services": ["one", "two"], "order": ["two", "one"], "start_s": {"two": 60, "one": 480}}')
    order = Order.read(file)
    assert (order.names, order.seconds(), order.seconds("two")) == (("two", "one"), 540, 480)
    turn = Turn.of("one", file)
    assert (turn.order, turn.wait_s) == (("two", "one"), 60)
