"""A key at the wrong level of a fleet file is told with the place where it belongs."""

from __future__ import annotations

from pathlib import Path

import pytest

from modules.fleet import FleetError, load_fleet
from modules.fleet.belongs import place_of
from modules.spec.fleet import FleetFile
from modules.spec.gateway import Gateway
from modules.spec.settings import HostSettings
from modules.spec.strategy import Strategy

TOP, SETTINGS = "at the top of the file", "under defaults, a group, or a host's settings"
SERVICE = "services: {gpt-oss: {engine: vllm, model: gpt-oss-120b, %s}}"
HOST = "hosts: {spark-1: {address: 10.0.0.11}}"


@pytest.mark.parametrize(
    ("text", "key", "belongs"),
    [
        (f"gateway: {{port: 8080}}\n{HOST}", "gateway", SETTINGS),
        (f"weights: {{}}\n{HOST}", "weights", SETTINGS),
        (f"canary: 1\n{HOST}", "canary", "under strategy, which stands at the top of the file"),
        (f"defaults: {{strategy: {{canary: 1}}}}\n{HOST}", "defaults.strategy", TOP),
        (f"defaults: {{soak: 5m}}\n{HOST}", "defaults.soak", "under strategy, which stands at the top"),
        (f"defaults: {{secrets: {{}}}}\n{HOST}", "defaults.secrets", TOP),
        (f"defaults: {{clients: {{}}}}\n{HOST}", "defaults.clients", f"under gateway, which stands {SETTINGS}"),
        (f"defaults: {{{SERVICE % 'gateway: {}'}}}\n{HOST}", "defaults.services.gpt-oss.gateway", SETTINGS),
        (f"defaults: {{{SERVICE % 'drain_s: 9'}}}\n{HOST}", "defaults.services.gpt-oss.drain_s", "under gateway"),
        (f"strategy: {{gateway: {{}}}}\n{HOST}", "strategy.gateway", SETTINGS),
        (f"groups: {{big: {{strategy: {{}}}}}}\n{HOST}", "groups.big.strategy", TOP),
        ("hosts: {spark-1: {settings: {strategy: {}}}}", "hosts.spark-1.settings.strategy", TOP),
        ("hosts: {spark-1: {strategy: {}}}", "hosts.spark-1.strategy", TOP),
        ("hosts: {spark-1: {gateway: {}}}", "hosts.spark-1.gateway", SETTINGS),
        ("hosts: {spark-1: {settings: {address: a}}}", "hosts.spark-1.settings.address", "in a host's own entry"),
        ("hosts: {spark-1: {settings: {gateway: {per_host: 4}}}}", "hosts.spark-1.settings.gateway.per_host",
         "under gateway.limits"),
    ],
)  # fmt: skip
def test_it_is_told_where_a_key_belongs(text: str, key: str, belongs: str, tmp_path: Path) -> None:
    path = tmp_path / "office.yaml"
    path.write_text(f"fleet: office\n{text}\n")
    with pytest.raises(FleetError) as refused:
        load_fleet(path)
    assert f"{path}:2: {key}: this key has no place here; it belongs {belongs}" in str(refused.value)


def test_every_key_of_strategy_gateway_file_and_settings_has_a_place_or_several() -> None:
    several = {"port", "listen", "metrics", "tls"}
    for model in (FleetFile, HostSettings, Strategy, Gateway):
        assert {key for key in model.model_fields if place_of(key, FleetFile) is None} <= several


def test_a_word_that_no_level_has_is_guessed_at_as_before(tmp_path: Path) -> None:
    path = tmp_path / "office.yaml"
    path.write_text(f"fleet: office\ndefaults: {{netwrok: {{}}}}\n{HOST}\n")
    with pytest.raises(FleetError, match="unknown key; did you mean network"):
        load_fleet(path)
