"""Which hosts get a service that says how many it wants: by memory, the same each time, and nothing moves."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from modules.fleet.placement import Place, Placement, Wish, placed

GIB = 1024**3
Before = Mapping[str, tuple[str, ...]]
HOSTS = ("spark-1", "spark-2", "spark-3", "spark-4")


def wish(
    name: str, replicas: int | None, size: int, *, port: int = 8000, hosts: tuple[str, ...] = HOSTS, priority: int = 0
) -> Wish:
    return Wish(name, replicas, hosts, dict.fromkeys(hosts, size * GIB), dict.fromkeys(hosts, port), priority)


def places(hosts: tuple[str, ...] = HOSTS, room: int = 100, **taken: int) -> list[Place]:
    """`taken`: host, with _ for -, → GiB of a service of its own, at port 9000."""
    found = [Place(host, room * GIB) for host in hosts]
    for place in found:
        if size := taken.get(place.host.replace("-", "_")):
            place.taken["own"] = size * GIB
            place.ports[9000] = "own"
    return found


def where(
    *wishes: Wish, at: list[Place] | None = None, before: Mapping[str, tuple[str, ...]] | None = None
) -> Placement:
    return placed(wishes, places() if at is None else at, before or {})


def test_each_goes_to_the_host_with_most_memory_left_and_of_two_alike_to_the_first() -> None:
    found = where(wish("chat", 2, 40), at=places(spark_1=50))
    assert found.hosts == {"chat": ("spark-2", "spark-3")}
    found = where(wish("chat", 2, 40), wish("code", 2, 50, port=8001), wish("embed", 1, 10, port=8002))
    assert found.hosts == {"chat": ("spark-1", "spark-2"), "code": ("spark-3", "spark-4"), "embed": ("spark-1",)}


def test_replicas_are_on_different_hosts() -> None:
    found = where(wish("small", 4, 1))
    assert sorted(found.hosts["small"]) == list(HOSTS)


def test_a_port_that_is_taken_is_no_place() -> None:
    found = where(wish("chat", 3, 10), wish("code", 2, 10))
    assert found.hosts["chat"] == ("spark-1", "spark-2", "spark-3")
    assert found.hosts["code"] == ("spark-4",)
    (misfit,) = found.misfits
    assert (misfit.wish.name, misfit.placed) == ("code", ("spark-4",))
    assert misfit.why["spark-1"] == "port 8000 is that of service chat"


def test_without_a_number_it_is_on_all_that_it_may_be_on() -> None:
    assert where(wish("embed", None, 5, hosts=("spark-2", "spark-4"))).hosts == {"embed": ("spark-2", "spark-4")}


def test_the_higher_priority_chooses_first() -> None:
    at = places(("spark-1", "spark-2"), room=60)
    low, high = wish("low", 2, 40, hosts=("spark-1", "spark-2")), wish("high", 1, 50, port=8001, priority=1,
                                                                       hosts=("spark-1", "spark-2"))  # fmt: skip
    found = placed([low, high], at, {})
    assert found.hosts == {"low": ("spark-2",), "high": ("spark-1",)}
    assert found.misfits[0].why == {"spark-1": "it takes 40.00 GiB and 10.00 GiB are left"}


def test_what_the_lock_says_stays_whatever_comes() -> None:
    before = {"chat": ("spark-3", "spark-1")}
    for more in ((), (wish("first", 4, 55, port=8001, priority=9),), (wish("last", 1, 5, port=8002),)):
        assert where(wish("chat", 2, 40), *more, before=before).hosts["chat"] == ("spark-3", "spark-1")
    # A host more, with more room than all others.
    at = [Place("spark-0", 900 * GIB), *places()]
    wide = wish("chat", 2, 40, hosts=("spark-0", *HOSTS))
    assert placed([wide], at, before).hosts["chat"] == ("spark-3", "spark-1")


def test_one_more_replica_moves_none_and_one_less_takes_the_last_away() -> None:
    before = {"chat": ("spark-3", "spark-1")}
    assert where(wish("chat", 3, 40), before=before).hosts["chat"] == ("spark-3", "spark-1", "spark-2")
    assert where(wish("chat", 1, 40), before=before).hosts["chat"] == ("spark-3",)


def test_a_host_that_is_gone_or_may_not_have_it_any_more_is_replaced() -> None:
    before = {"chat": ("spark-9", "spark-2")}
    assert where(wish("chat", 2, 40), before=before).hosts["chat"] == ("spark-2", "spark-1")
    elsewhere = wish("chat", 2, 40, hosts=("spark-3", "spark-4"))
    assert where(elsewhere, before=before).hosts["chat"] == ("spark-3", "spark-4")


def test_a_second_reckoning_with_what_the_first_has_found_comes_to_the_same() -> None:
    wishes = [wish("chat", 2, 40), wish("code", 3, 30, port=8001), wish("embed", None, 5, port=8002)]
    first = where(*wishes).hosts
    assert where(*wishes).hosts == first
    for order in itertools.permutations(wishes):
        assert placed(order, places(), first).hosts == first


def test_no_host_gets_more_than_it_has() -> None:
    wishes = [wish(f"s{number}", 2, 17 + number, port=8000 + number) for number in range(8)]
    found = where(*wishes, at=places(spark_2=60))
    assert all(place.left >= 0 for place in found.places.values())
    assert sum(len(hosts) for hosts in found.hosts.values()) + sum(
        (misfit.wish.replicas or 0) - len(misfit.placed) for misfit in found.misfits
    ) == 2 * len(wishes)
