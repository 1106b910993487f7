"""What is odd in a fleet as a whole is told and not refused; what is usual is not told."""

from __future__ import annotations

from pathlib import Path

import pytest

from modules.fleet import load_fleet


def remarks(text: str, folder: Path) -> list[str]:
    path = folder / "office.yaml"
    path.write_text(text)
    return [f"{one.origin.line}: {one.what}; {one.todo}" for one in load_fleet(path).remarks]


HOSTS = "hosts: {spark-1: {address: 10.0.0.11}, spark-2: {address: 10.0.0.12}, spark-3: {address: 10.0.0.13}}\n"


@pytest.mark.parametrize(
    ("strategy", "told"),
    [
        ("{max_failures: 3}", ["2: 3 of 3 hosts may fail, so the fleet never stops; write less than 3"]),
        ("{max_failures: 9}", ["2: 9 of 3 hosts may fail"]),
        (
            "{canary: 0, batch: 100%}",
            ["2: without a canary and with 100% of 3 hosts together, a bad release"],
        ),
        ("{canary: 0, batch: '3'}", ["2: without a canary and with 3 of 3 hosts together"]),
        ("{canary: 0, soak: 5m}", ["2: without a canary nobody soaks"]),
        (
            "{canary: 0, batch: 100%, max_failures: 3, soak: 1h}",
            ["2: 3 of 3 hosts", "2: without a canary and", "2: without a canary nobody"],
        ),
    ],
)
def test_a_strategy_that_holds_nothing_back_is_told_of(strategy: str, told: list[str], tmp_path: Path) -> None:
    found = remarks(f"fleet: office\nstrategy: {strategy}\n{HOSTS}", tmp_path)
    assert len(found) == len(told)
    for line, words in zip(found, told, strict=True):
        assert line.startswith(words)


@pytest.mark.parametrize(
    "strategy",
    ["{}", "{max_failures: 2}", "{canary: 0}", "{canary: 0, soak: 0}", "{canary: 1, batch: 100%}",
     "{canary: [spark-1], batch: 100%, soak: 1h}", "{canary: 0, batch: 66%}"],
)  # fmt: skip
def test_one_that_does_is_not(strategy: str, tmp_path: Path) -> None:
    assert remarks(f"fleet: office\nstrategy: {strategy}\n{HOSTS}", tmp_path) == []


def test_of_a_single_host_nothing_can_be_held_back(tmp_path: Path) -> None:
    text = (
        "fleet: office\nstrategy: {canary: 0, batch: 100%, max_failures: 5}\nhosts: {spark-1: {address: 10.0.0.11}}\n"
    )
    assert remarks(text, tmp_path) == []


MONITORED = """\
fleet: office
defaults:
  monitoring:
    exporters: {listen: 0.0.0.0, scraped_from: [%s]}
hosts:
  spark-1: {address: 10.0.0.11, settings: {monitoring: {prometheus: {}}, network: {peer_address: 192.168.7.1}}}
  spark-2: {address: 10.0.0.12}
  spark-3: {address: 10.0.0.13}
"""


@pytest.mark.parametrize("allowed", ["10.0.0.5", "10.0.0.12", "192.168.7.2/31", "10.0.0.12, 10.0.1.0/24"])
def test_exporters_that_the_fleets_own_prometheus_may_not_ask_are_told_of_once(allowed: str, tmp_path: Path) -> None:
    assert remarks(MONITORED % allowed, tmp_path) == [
        "4: the Prometheus on spark-1 (192.168.7.1 or 10.0.0.11) is not among those who may ask these exporters; "
        "add its address, unless it asks from another one"
    ]


@pytest.mark.parametrize("allowed", ["10.0.0.11", "10.0.0.0/24", "192.168.7.1", "10.0.0.5, 192.168.0.0/16"])
def test_those_that_it_may_ask_at_any_of_its_addresses_are_not(allowed: str, tmp_path: Path) -> None:
    assert remarks(MONITORED % allowed, tmp_path) == []


def test_of_a_prometheus_whose_address_is_not_known_nothing_is_said(tmp_path: Path) -> None:
    text = (MONITORED % "10.0.0.5").replace("address: 10.0.0.11", "address: spark-1.local")
    assert remarks(text.replace(", network: {peer_address: 192.168.7.1}", ""), tmp_path) == []


SEEDS = """\
fleet: office
defaults:
  services: {gpt-oss: {engine: vllm, model: gpt-oss-120b}}
hosts:
  spark-1: {address: 10.0.0.11, settings: {weights: {spread: {seed: true}}}}
  spark-2:
    address: 10.0.0.12
    settings:
      weights: {spread: {seed: SECOND}}
      services: {gpt-oss: {model: MODEL}}
  spark-3: {address: 10.0.0.13}
"""


def test_two_seeds_of_one_model_are_told_of_where_the_second_is_named(tmp_path: Path) -> None:
    found = remarks(SEEDS.replace("SECOND", "true").replace("MODEL", "gpt-oss-120b"), tmp_path)
    assert found == [
        "9: spark-1, spark-2 are all the seed of gpt-oss-120b, and one of them fetches it: that which has most of it; "
        "name one, and others are tried only where it fails"
    ]


@pytest.mark.parametrize(("second", "model"), [("true", "gpt-oss-20b"), ("false", "gpt-oss-120b")])
def test_a_seed_for_each_model_is_meant(second: str, model: str, tmp_path: Path) -> None:
    assert remarks(SEEDS.replace("SECOND", second).replace("MODEL", model), tmp_path) == []
