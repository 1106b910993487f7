"""Who fetches, who gives, who takes, and by which addresses."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from modules.spec.settings import Spread, Weights
from modules.spreading.parts import Member, Part, listening, part_of, seen_from
from modules.spreading.request import swarm_request

FABRIC = Spread(network="10.9.0.0/24")


def member(number: int, *, whole: bool = False, held: int = 0, spread: Spread | None = None) -> Member:
    addresses = (f"10.0.0.{number}", f"10.9.0.{number}")
    return Member(f"spark-{number}", whole, held, addresses, addresses[0], spread or Spread())


def parts(*members: Member) -> list[Part]:
    return [part_of(each.name, members) for each in members]


def test_where_all_have_it_or_one_is_alone_nothing_is_spread() -> None:
    assert parts(member(1, whole=True), member(2, whole=True)) == [Part.NOTHING] * 2
    assert parts(member(1, whole=True)) == [Part.NOTHING]
    assert parts(member(1)) == [Part.FETCH]


def test_where_none_has_it_one_fetches_who_is_the_seed_or_has_most_or_comes_first() -> None:
    seed = Spread(seed=True)
    assert parts(member(1), member(2)) == [Part.FETCH, Part.TAKE]
    assert parts(member(1, held=3), member(2, held=9)) == [Part.TAKE, Part.FETCH]
    assert parts(member(1, held=9), member(2, held=3, spread=seed)) == [Part.TAKE, Part.FETCH]


def test_all_that_have_it_give_it() -> None:
    assert parts(member(1, whole=True), member(2), member(3, whole=True)) == [Part.GIVE, Part.TAKE, Part.GIVE]


def test_who_does_not_spread_is_nobodys_source() -> None:
    alone = Spread(enabled=False)
    assert parts(member(1, whole=True, spread=alone), member(2)) == [Part.NOTHING, Part.FETCH]
    assert parts(member(1, spread=alone), member(2, whole=True)) == [Part.FETCH, Part.NOTHING]


def test_the_fabric_is_used_between_hosts_that_both_have_it() -> None:
    one, two, plain = member(1, spread=FABRIC), member(2, spread=FABRIC), member(3)
    assert listening(one) == ["10.9.0.1", "10.0.0.1"]
    assert seen_from(one, two) == "10.9.0.2"
    assert seen_from(one, plain) == "10.0.0.3"
    assert seen_from(plain, one) == "10.0.0.1"
    unplugged = Member("spark-4", whole=False, addresses=("10.0.0.4",), address="10.0.0.4", spread=FABRIC)
    assert listening(unplugged) == ["10.0.0.4"]
    assert seen_from(unplugged, one) == "10.0.0.1"


def test_a_request_names_the_others_and_nobody_else() -> None:
    offer = dict.fromkeys(("commit", "filters", "files", "tree", "name", "piece_bytes", "pieces"), "x")
    members = [member(1, whole=True), member(2), member(3), member(4, spread=Spread(enabled=False))]
    weights = Weights(spread=Spread(port=7001, limit_mbit=80))

    text = swarm_request(
        members[1], members, repository="o/m", revision="main", weights=weights, reserve_bytes=7, offer=offer
    )

    request = json.loads(text)
    assert text.endswith("\n")
    assert request["peers"] == [["10.0.0.1", 6889], ["10.0.0.3", 6889]]
    assert request["takers"] == ["10.0.0.3"]
    assert request["share"] == [0, 2]
    assert request["allowed"] == ["10.0.0.1", "10.0.0.3", "10.9.0.1", "10.9.0.3"]
    assert (request["listen"], request["port"], request["limit_bytes"]) == (["10.0.0.2"], 7001, 10_000_000)


@pytest.mark.parametrize("network", ["10.9.0.1/24", "fabric", "fe80::/64"])
def test_a_network_that_is_none_is_refused(network: str) -> None:
    with pytest.raises(ValidationError, match="not an IPv4 network"):
        Spread(network=network)
