"""Adopting: what a host is given for it, what it is refused for, and that it is given nothing twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from modules.adopt.piece import Piece, pieces_of
from modules.catalog import load_catalog
from modules.facts.predecessors import Predecessors
from modules.facts.servers import RunningServers
from modules.facts.weights import WeightsOnHost, WeightsState
from modules.operations import adopting
from modules.operations.adopt import all_matched, predecessor_back, predecessor_chosen, weights_brought
from modules.operations.weights import Wanted
from modules.spec.model import Model
from modules.spec.settings import Weights
from tests.operations.stub_host import StubHost, commands_of
from tests.unit.server_samples import COMMIT, CONTAINER, HUB, container, image, process, seen

RUNS = ("vllm", "serve", "openai/gpt-oss-20b")
HOME = "/home/nvidia/.cache/huggingface"
INCLUDE = ("config.json", "model-*-of-00002.safetensors")


def piece(**changes: object) -> Piece:
    (found,) = pieces_of(seen(process(RUNS), container(RUNS, **changes), image()).servers, load_catalog())
    return found


@pytest.fixture(autouse=True)
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    path = tmp_path / "fleet.yaml"
    path.write_text("fleet: office\nhosts:\n  spark-1: {address: 10.0.0.1}\n")
    monkeypatch.setenv("TINDERBOX_FLEET", str(path))
    yield
    adopting._taking.clear()


def wanted(home: str) -> Wanted:
    model = Model(repository="openai/gpt-oss-20b", revision=COMMIT, include=INCLUDE, served_as="x", source="for tests")
    return Wanted(model, Weights(home=home), 20)


def state(*, stamped: bool) -> WeightsState:
    filters = {"include": INCLUDE, "exclude": ("original/*", "metal/*")}
    return WeightsState(commit=COMMIT if stamped else None, stamped=stamped, problems=(), files=3, filters=filters)


def test_a_server_is_noted_without_a_secret() -> None:
    host = StubHost({})
    arguments = {"service": "chat", "piece": piece(), "port": 8000, "home": HOME}
    (command,) = commands_of(host, predecessor_chosen, **arguments)
    assert command.get_raw_value().endswith("predecessor.py choose chat")
    record = json.loads(command.connector_arguments["_stdin"])
    assert (record["container"], record["port"], record["units"]) == (CONTAINER, 8000, [])
    assert "container llm is stopped, once all that service chat needs is on the host" in host.logged[0]


def test_it_comes_back_by_one_program() -> None:
    host = StubHost({})
    (command,) = commands_of(host, predecessor_back, service="chat", named="container llm")
    assert "predecessor.py undo chat " in command.get_raw_value()
    assert host.logged == ["container llm comes back; service chat is stopped and disabled"]


def test_a_host_is_refused_whose_service_has_nobodys_place_to_take() -> None:
    host = StubHost({})
    assert commands_of(host, all_matched, trouble=[]) == []
    (refused,) = commands_of(host, all_matched, trouble=["spark-1: service chat: no server"])
    assert "no server" in refused.get_raw_value()
    assert refused.get_raw_value().endswith("exit 1")


def test_weights_that_lie_where_ours_do_are_left_there() -> None:
    host = StubHost({WeightsOnHost: state(stamped=False)})
    assert commands_of(host, weights_brought, piece=piece(), wanted=wanted(HOME)) == []
    assert "lies in" in host.noops[0]


def test_weights_elsewhere_are_linked_once() -> None:
    volume = [
        {"Type": "volume", "Source": "/var/lib/docker/volumes/hf/_data", "Destination": "/root/.cache/huggingface"}
    ]
    there = piece(Mounts=volume)
    host = StubHost({WeightsOnHost: state(stamped=False)})
    start, *_ = commands_of(host, weights_brought, piece=there, wanted=wanted("/var/lib/tinderbox/huggingface"))
    text = start.get_raw_value()
    assert "link_weights.py --source /var/lib/docker/volumes/hf/_data/hub" in text
    assert f"--commit {COMMIT}" in text
    host = StubHost({WeightsOnHost: state(stamped=True)})
    assert commands_of(host, weights_brought, piece=there, wanted=wanted("/var/lib/tinderbox/huggingface")) == []


def test_the_facts_ask_without_anything_of_ours_on_the_host() -> None:
    command = RunningServers().command().get_raw_value()
    assert command.startswith("python3 -c")
    assert "gather_servers" in command
    assert (
        Predecessors().parse(['{"chat": {"state": "stopped", "named": "container llm"}}'])["chat"]["state"] == "stopped"
    )
    told = {"processes": [process(RUNS, container=None, caches=[])], "containers": {}, "units": [], "gpu": []}
    (found,) = RunningServers().parse(["a banner", json.dumps(told)]).servers
    assert found.words == RUNS
    assert HUB not in repr(found)
