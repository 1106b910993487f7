"""Several services of a host, and services that stand in no layer: what plans, hosts, engine and gateway are told."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest

from modules.catalog import load_catalog
from modules.fleet import Fleet, load_fleet
from modules.fleet.gateway import gateway_plan
from modules.fleet.lock import read_lock, record
from modules.fleet.plan import host_plan
from modules.fleet.shown import placement_lines, plan_lines
from modules.gateway.render import configuration
from modules.operations.memory import services_file
from tests.unit.release_samples import release

FLEET = """\
fleet: office
secrets: {key: {env: HOME}}
services:
  big: {engine: vllm-mxfp4, model: gpt-oss-120b, replicas: 2, priority: 5, listen: 0.0.0.0, api_key: key}
  chat:
    engine: vllm
    model: gpt-oss-20b
    port: 8001
    replicas: 1
    flags: {gpu-memory-utilization: 0.4}
    aliases: [everyday, gpt-4]
    listen: 0.0.0.0
    api_key: key
  embed:
    engine: vllm
    model: qwen3-embedding-4b
    port: 8002
    on: [rack, spark-4]
    flags: {gpu-memory-utilization: 0.1}
    listen: 0.0.0.0
    api_key: key
groups:
  rack: {services: {embed: {environment: {A: "1"}}, chat: {priority: 7}}}
hosts:
  spark-1: {address: 10.0.0.11}
  spark-2: {address: 10.0.0.12, groups: [rack]}
  spark-3: {address: 10.0.0.13, groups: [rack], settings: {services: {embed: null}}}
  spark-4: {address: 10.0.0.14, settings: {gateway: {}, services: {big: null}}}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "fleet.yaml"
    file.write_text(dedent(FLEET))
    return file


def services(fleet: Fleet) -> dict[str, list[str]]:
    return {name: sorted(host.settings.services) for name, host in fleet.hosts.items()}


def another(path: Path, text: str) -> Fleet:
    """Another fleet file with the same lock: a process reads one file once."""
    other = path.with_name("other.yaml")
    other.write_text(text)
    lock = path.with_suffix(".lock.yaml")
    if lock.exists():
        other.with_suffix(".lock.yaml").write_text(lock.read_text())
    return load_fleet(other)


def test_each_host_has_what_was_placed_on_it_with_what_its_layers_say_of_that(path: Path) -> None:
    fleet = load_fleet(path)
    assert services(fleet) == {
        "spark-1": ["big"], "spark-2": ["chat", "embed"], "spark-3": ["big"], "spark-4": ["embed"],
    }  # fmt: skip
    assert fleet.placements == {"big": ("spark-1", "spark-3"), "chat": ("spark-2",), "embed": ("spark-2", "spark-4")}
    assert fleet.hosts["spark-2"].settings.services["embed"].environment == {"A": "1"}
    assert fleet.hosts["spark-4"].settings.services["embed"].environment == {}
    assert fleet.hosts["spark-2"].settings.services["chat"].priority == 7


def test_what_the_lock_has_stays_when_hosts_and_services_come_and_go(path: Path) -> None:
    record(path, placements=load_fleet(path).placements)
    more = """\
services:
  more:
    engine: vllm
    model: qwen3-8-27b-nvfp4
    port: 8003
    replicas: 1
    priority: 9
    flags: {gpu-memory-utilization: 0.3}
    listen: 0.0.0.0
    api_key: key
"""
    text = path.read_text().replace("services:\n", more, 1)
    text = text.replace("hosts:\n", "hosts:\n  spark-0: {address: 10.0.0.10}\n").replace("replicas: 2", "replicas: 1")
    fleet = another(path, text)
    assert fleet.placements == {
        "more": ("spark-0",), "big": ("spark-1",), "chat": ("spark-2",), "embed": ("spark-2", "spark-4"),
    }  # fmt: skip
    assert placement_lines(fleet.placements, read_lock(fleet.path)) == [
        "service more: on spark-0 (new)",
        "service big: on spark-1; no more on spark-3: deploys/remove.py takes it off",
        "service chat: on spark-2",
        "service embed: on spark-2, spark-4",
    ]


def test_the_plan_says_who_starts_first_and_what_is_left(path: Path) -> None:
    fleet = load_fleet(path)
    lines = plan_lines(fleet, load_catalog(), read_lock(path))
    assert lines[:3] == [
        "service big: on spark-1 (new), spark-3 (new)",
        "service chat: on spark-2 (new)",
        "service embed: on spark-2 (new), spark-4 (new)",
    ]
    at = lines.index("spark-2: 121.69 GiB of memory, 8.00 GiB of it the system's")
    assert lines[at + 1 : at + 4] == [
        "    chat: 56.36 GiB, port 8001, gpt-oss-20b, everyday, gpt-4 by vllm, priority 7, placed",
        "    embed: 15.39 GiB, port 8002, qwen3-embedding-4b by vllm, placed",
        "    41.94 GiB left",
    ]


def test_a_host_is_told_in_which_order_its_services_start(path: Path) -> None:
    fleet = load_fleet(path)
    plan = host_plan(fleet.hosts["spark-2"], load_catalog())
    assert [service.name for service in plan.in_order] == ["chat", "embed"]
    told = json.loads(str(services_file(plan).content))
    assert (told["services"], told["order"]) == (["chat", "embed"], ["chat", "embed"])
    assert told["spans"] == []
    assert set(told["start_s"]) == {"chat", "embed"}
    assert min(told["start_s"].values()) >= 60
    alone = host_plan(fleet.hosts["spark-1"], load_catalog())
    # As before there were several: no host with one service is told anything new.
    assert services_file(alone).content == '{"services": ["big"]}\n'


def test_the_engine_serves_by_all_names_and_a_release_without_any_is_what_it_was() -> None:
    command = release(aliases=["everyday", "gpt-4"]).command
    at = command.index("--served-model-name")
    assert command[at + 1 : at + 5] == ("gpt-oss-tiny", "everyday", "gpt-4", command[at + 4])
    assert command[at + 4].startswith("--")
    assert release(aliases=[], priority=9).id == release().id
    assert release(aliases=["everyday"]).id != release().id


def test_the_gateway_sends_by_model_and_by_alias_to_where_a_service_was_placed(path: Path) -> None:
    plan = gateway_plan("spark-4", load_fleet(path).hosts, load_catalog())
    assert plan is not None
    assert {route.service: [one.host for one in route.upstreams] for route in plan.routes} == {
        "big": ["spark-1", "spark-3"], "chat": ["spark-2"], "embed": ["spark-2", "spark-4"],
    }  # fmt: skip
    text = configuration(plan)
    assert 'use_backend chat if { var(txn.model) -m str "gpt-oss-20b" "everyday" "gpt-4" }\n' in text
    assert 'acl known var(txn.model) -m str "gpt-oss-20b" "everyday" "gpt-4"\n' in text
    assert '"id": "everyday"' in text
    # Also where a request is nested too deep for HAProxy to read it.
    assert '[[:space:]]*"gpt\\-4"' in text


def test_a_file_may_say_that_it_has_none(path: Path) -> None:
    assert another(path, "fleet: office\nservices:\nhosts: {spark-1: }\n").placements == {}
