"""Memory plans of the services of a host, from a fleet file."""

from __future__ import annotations

from pathlib import Path

import pytest

from modules.catalog import load_catalog
from modules.fleet import HostPlan, load_fleet
from modules.fleet.plan import host_plan
from modules.memory import LAB_RESERVE, SYSTEM_RESERVE, Checkpoint, describe
from modules.memory.service import machine_for, planned, settings_of
from modules.memory.sizes import GIB

CONFIG = {"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 4096}
FLEET = """\
fleet: two
defaults:
  services:
    large: {engine: vllm, model: gpt-oss-120b, port: 8000, flags: {gpu-memory-utilization: 0.55, enforce-eager: true}}
    small:
      engine: vllm
      model: gpt-oss-20b
      port: 8001
      flags: {gpu-memory-utilization: 0.2, max-model-len: 8192, enforce-eager: true}
      environment: {EXTRA: "1"}
hosts:
  spark-1: {address: 192.168.1.20}
  spark-2:
    address: 192.168.1.21
    settings: {services: {small: {memory_plan: warn, flags: {gpu-memory-utilization: 0.4}}}}
  lab-1: {address: 127.0.0.1, settings: {hardware: {simulated: true}}}
"""


@pytest.fixture
def hosts(tmp_path: Path) -> dict[str, HostPlan]:
    file = tmp_path / "two.yaml"
    file.write_text(FLEET)
    return {name: host_plan(host, load_catalog()) for name, host in load_fleet(file).hosts.items()}


@pytest.fixture
def host(hosts: dict[str, HostPlan]) -> HostPlan:
    return hosts["spark-1"]


def checkpoint(gib: int) -> Checkpoint:
    return describe({"BF16": gib * GIB}, CONFIG)


def test_flags_and_variables_of_the_service_count(host: HostPlan) -> None:
    settings = settings_of(host.services[1])

    assert settings.flags["max-model-len"] == 8192
    assert settings.flags["kv-cache-dtype"] == "fp8"
    assert settings.environment["EXTRA"] == "1"


def test_each_service_reckons_with_the_other(host: HostPlan) -> None:
    both = {"large": checkpoint(45), "small": checkpoint(12)}
    memory = round(121.69 * GIB)
    large, small = host.services
    beside = machine_for("large", host, memory, both, {})
    plan, _ = planned(small, both["small"], machine_for("small", host, memory, both, {}))

    assert beside.neighbours == plan.claim
    assert beside.reserve == SYSTEM_RESERVE
    assert machine_for("large", host, memory, {"large": both["large"]}, {}).neighbours == 0
    told, suggestions = planned(large, both["large"], beside)
    assert told.fits
    assert suggestions == ()
    assert told.total == told.claim + plan.claim + SYSTEM_RESERVE


def test_two_that_are_too_much_together_are_refused_with_advice(hosts: dict[str, HostPlan]) -> None:
    host = hosts["spark-2"]
    both = {"large": checkpoint(45), "small": checkpoint(12)}
    memory = round(121.69 * GIB)
    plan, suggestions = planned(host.services[0], both["large"], machine_for("large", host, memory, both, {}))

    assert [problem.kind for problem in plan.problems] == ["machine"]
    assert suggestions
    assert all(suggestion.plan.fits for suggestion in suggestions)
    assert planned(host.services[1], both["small"], machine_for("small", host, memory, {}, {}))[0].fits


def test_a_lab_host_reserves_less(hosts: dict[str, HostPlan]) -> None:
    assert machine_for("large", hosts["lab-1"], 12 * GIB, {}, {}).reserve == LAB_RESERVE
