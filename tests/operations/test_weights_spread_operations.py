"""What each host of a run is given to do for a model, and that a converged fleet is given nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from modules.facts.job import JobState, JobStatus
from modules.facts.weights import WeightsOnHost, WeightsState
from modules.operations import spread_board
from modules.operations import weights as operations
from modules.operations.follow import follow
from modules.operations.weights import Wanted, weights_fetched, weights_seen
from modules.operations.weights_spread import (
    read_offer,
    weights_offered,
    weights_shared,
    weights_sharing_ended,
    weights_taken,
)
from modules.spec.lock import Lock
from modules.spec.model import Model
from modules.spec.settings import Spread, Weights
from tests.operations.stub_host import StubHost, commands_of

COMMIT = "c" * 40
MODEL = Model(repository="owner/big", revision=COMMIT, size_gib=1, served_as="big", source="test")
FILTERS: dict[str, tuple[str, ...]] = {"include": (), "exclude": ("original/*", "metal/*")}
WHOLE = WeightsState(commit=COMMIT, stamped=True, filters=FILTERS, address="10.0.0.1", addresses=("10.0.0.1",))
LACKING = WeightsState(commit=COMMIT, address="10.0.0.2", addresses=("10.0.0.2", "10.9.0.2"))
OFFER: dict[str, object] = {
    "commit": COMMIT,
    "filters": FILTERS,
    "files": [],
    "tree": None,
    "name": "drawn by lot",
    "piece_bytes": 262144,
    "pieces": "",
}
AFTER = (weights_fetched, weights_offered, weights_shared, weights_taken, weights_sharing_ended)


class Fleet:
    path = Path("fleet.yaml")


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread_board, "_board", {})
    monkeypatch.setattr(operations, "load_fleet", Fleet)
    monkeypatch.setattr(operations, "read_lock", lambda _: Lock())


class Host(StubHost):
    def __init__(self, name: str, state: WeightsState) -> None:
        super().__init__({WeightsOnHost: state, JobState: JobStatus(job="offer", state="succeeded", result=OFFER)})
        self.name = name


def wanted(**spread: Any) -> Wanted:
    return Wanted(MODEL, Weights(spread=Spread(**spread)), 2.0)


def seen(*hosts: Host, **spread: Any) -> None:
    for host in hosts:
        assert commands_of(host, weights_seen, wanted=wanted(**spread)) == []


def ran(host: Host, operation: Any, **spread: Any) -> list[Any]:
    return commands_of(host, operation, wanted=wanted(**spread))


def text(command: Any) -> str:
    return str(command.get_raw_value())


def test_a_fleet_that_has_it_is_given_nothing_and_asked_once() -> None:
    hosts = [Host("spark-1", WHOLE), Host("spark-2", WHOLE)]
    seen(*hosts)

    assert [ran(host, operation) for operation in AFTER for host in hosts] == [[]] * 10
    assert [len(host.asked) for host in hosts] == [1, 1]


def test_one_fetches_and_the_others_take_it_from_there() -> None:
    one, other = Host("spark-1", LACKING), Host("spark-2", LACKING)
    seen(one, other)

    start, following, _ = ran(one, weights_fetched)
    assert "fetch_weights.py" in text(start)
    assert following.function is follow
    assert ran(other, weights_fetched) == []

    start, following, reading = ran(one, weights_offered)
    assert "offer_weights.py --repository owner/big --commit " + COMMIT in text(start)
    assert reading.function is read_offer
    assert read_offer(None, one, *reading.args)
    assert ran(other, weights_offered) == []

    placing, start = ran(one, weights_shared)
    assert text(placing).endswith(".request.json 600")
    assert "drawn by lot" not in text(placing) + text(start)
    assert json.loads(placing.connector_arguments["_stdin"])["takers"] == ["10.0.0.2"]
    assert "share_weights.py" in text(start)

    placing, start, following = ran(other, weights_taken)
    request = json.loads(placing.connector_arguments["_stdin"])
    assert request["name"] == "drawn by lot"
    assert request["reserve_bytes"] == 2 * 1024**3
    assert "take_weights.py" in text(start)
    assert following.function is follow
    assert ran(one, weights_taken) == []

    (ending,) = ran(one, weights_sharing_ended)
    assert "systemctl stop tinderbox-job-share-" in text(ending)
    assert ran(other, weights_sharing_ended) == []


def test_who_does_not_spread_fetches_alone() -> None:
    host, other = Host("spark-1", LACKING), Host("spark-2", WHOLE)
    seen(host, enabled=False)
    seen(other)

    assert "fetch_weights.py" in text(ran(host, weights_fetched, enabled=False)[0])
    assert [ran(other, operation) for operation in AFTER] == [[]] * 5


def test_where_nobody_can_give_it_a_host_fetches_it_itself() -> None:
    one, other = Host("spark-1", WHOLE), Host("spark-2", LACKING)
    seen(one, other)

    start, _, _ = ran(other, weights_taken)

    assert "fetch_weights.py" in text(start)


def test_an_offer_that_is_not_there_fails_its_host() -> None:
    host = Host("spark-1", WHOLE)
    host.answers[JobState] = [None]
    logged: list[str] = []
    host.log = lambda line, **_: logged.append(line)  # type: ignore[method-assign]
    seen(host, Host("spark-2", LACKING))

    *_, reading = ran(host, weights_offered)

    assert read_offer(None, host, *reading.args) is False  # type: ignore[arg-type]
    assert "tinderbox-job-offer-" in logged[-1]
