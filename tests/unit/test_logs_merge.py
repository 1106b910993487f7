"""Several hosts' logs in one order."""

from __future__ import annotations

import random

from modules.logs.merge import Merger


def test_the_past_of_all_hosts_is_in_the_order_of_time() -> None:
    merger: Merger[str] = Merger(["a", "b"])
    merger.add("a", 10, "a10", 0.0)
    merger.add("a", 30, "a30", 0.0)
    assert merger.ready(0.0) == []  # what b has may be older
    merger.add("b", 20, "b20", 0.0)
    assert merger.ready(0.0) == ["a10", "b20"]
    merger.add("b", 25, "b25", 0.0)
    merger.live("b", 0.0)
    assert merger.ready(0.0) == ["b25", "a30"]
    merger.live("a", 0.0)
    assert merger.ready(0.0) == []


def test_a_host_that_has_nothing_keeps_nobody_waiting_once_it_has_said_so() -> None:
    merger: Merger[str] = Merger(["a", "b"])
    merger.add("a", 10, "a10", 0.0)
    merger.live("b", 0.0)
    assert merger.ready(0.0) == ["a10"]


def test_what_happens_now_is_held_for_a_moment_so_that_it_is_in_order() -> None:
    merger: Merger[str] = Merger(["a", "b"], hold_s=0.3)
    for name in ("a", "b"):
        merger.live(name, 0.0)
    merger.add("a", 2_000, "later", 1.0)
    assert merger.ready(1.1) == []
    assert merger.next_s(1.1) is not None
    merger.add("b", 1_000, "earlier", 1.2)
    assert merger.ready(1.55) == ["earlier", "later"]
    assert merger.next_s(1.55) is None


def test_what_comes_late_is_told_all_the_same() -> None:
    merger: Merger[str] = Merger(["a"], hold_s=0.3)
    merger.live("a", 0.0)
    merger.add("a", 2_000, "new", 1.0)
    assert merger.ready(1.5) == ["new"]
    merger.add("a", 1_000, "old", 2.0)
    assert merger.ready(2.5) == ["old"]


def test_nothing_is_lost_or_doubled_and_all_is_in_order() -> None:
    draw = random.Random(7)
    streams = {name: sorted(draw.randrange(1000) for _ in range(200)) for name in "abc"}
    merger: Merger[tuple[str, int]] = Merger(streams)
    left = {name: list(stream) for name, stream in streams.items()}
    out = []
    while any(left.values()):
        name = draw.choice([name for name, stream in left.items() if stream])
        at = left[name].pop(0)
        merger.add(name, at, (name, at), 0.0)
        if not left[name]:
            merger.live(name, 0.0)
        out += merger.ready(0.0)
    out += merger.rest()
    assert [at for _, at in out] == sorted(at for stream in streams.values() for at in stream)
    for name, stream in streams.items():
        assert [at for whose, at in out if whose == name] == stream
