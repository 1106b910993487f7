"""Where a gateway sends requests, and what each host that serves has to know of that."""

from __future__ import annotations

from pathlib import Path

import pytest

from modules.catalog import load_catalog
from modules.fleet import load_fleet, plan
from modules.fleet.gateway import Upstream, agent_plan, gateway_plan

FLEET = """\
fleet: office
secrets: {key: {env: HOME}}
defaults:
  services:
    gpt-oss: {engine: vllm, model: gpt-oss-120b, listen: 0.0.0.0, api_key: key}
hosts:
  spark-1: {address: 10.0.0.11}
  spark-2: {address: spark-2.office, settings: {network: {peer_address: 192.168.100.12}}}
  spark-3:
    address: 10.0.0.13
    settings:
      services:
        gpt-oss: {listen: 10.0.0.13, port: 9000, flags: {gpu-memory-utilization: 0.65}}
        other: {engine: vllm, model: gpt-oss-20b, port: 8001, flags: {gpu-memory-utilization: 0.15}}
  spark-4:
    address: 10.0.0.14
    settings:
      gateway: {services: [gpt-oss], drain_s: 30}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "fleet.yaml"
    file.write_text(FLEET)
    return file


def test_every_host_that_has_the_service_is_asked_at_an_address_that_the_gateway_reaches(path: Path) -> None:
    found = gateway_plan("spark-4", load_fleet(path).hosts, load_catalog())
    assert found is not None
    (route,) = found.routes
    assert (route.service, route.model, route.secret) == ("gpt-oss", "gpt-oss-120b", "key")
    assert route.upstreams == (
        Upstream("spark-1", "10.0.0.11", 8000, "10.0.0.11"),
        Upstream("spark-2", "192.168.100.12", 8000, "192.168.100.12"),
        Upstream("spark-3", "10.0.0.13", 9000, "10.0.0.13"),
        Upstream("spark-4", "127.0.0.1", 8000, "127.0.0.1"),
    )
    assert gateway_plan("spark-1", load_fleet(path).hosts, load_catalog()) is None


def test_a_host_tells_the_gateway_of_the_services_that_it_has(path: Path) -> None:
    hosts = load_fleet(path).hosts
    third = agent_plan("spark-3", hosts)
    assert third is not None
    assert (third.listen, third.services, third.gateways, third.drain_s) == (
        "0.0.0.0",
        ("gpt-oss",),
        ("10.0.0.14",),
        30,
    )
    fourth = agent_plan("spark-4", hosts)
    assert fourth is not None
    # Nobody else asks there.
    assert (fourth.listen, fourth.gateways) == ("127.0.0.1", ("127.0.0.1",))


def test_a_fleet_without_a_gateway_tells_nobody_and_waits_for_nobody(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drained = load_fleet(path)
    monkeypatch.setattr(plan, "load_fleet", lambda: drained)
    assert {one.name: one.drain_s for one in plan.plan_for("spark-3").services} == {"gpt-oss": 30, "other": 0}
    bare = path.with_name("bare.yaml")
    bare.write_text(FLEET[: FLEET.index("      gateway:")].rstrip().removesuffix("settings:"))
    without = load_fleet(bare)
    monkeypatch.setattr(plan, "load_fleet", lambda: without)
    assert agent_plan("spark-1", without.hosts) is None
    assert {one.drain_s for one in plan.plan_for("spark-1").services} == {0}
