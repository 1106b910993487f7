"""What roles are told of a host."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

from modules.catalog import load_catalog
from modules.fleet import HostPlan, load_fleet, plan_for, plan_of
from modules.fleet.plan import host_plan
from modules.images import build_of

FLEET = """\
fleet: office
defaults:
  services:
    gpt-oss:
      engine: vllm-mxfp4
      model: gpt-oss-120b
      profile: throughput
      gate: vllm-mxfp4-single-stream
      flags: {enforce-eager: false, max-model-len: 4096, max-num-seqs: null}
      image:
        architecture: 12.1a
        pins: {cutlass: {commit: 11af7f02ab52c9130e422eeb4b44042fbd60c083}}
        packages: {llama-benchy: 0.5.0}
hosts:
  spark-1: {address: 10.0.0.11}
  spark-2:
    settings:
      services:
        gpt-oss: null
        other:
          engine: vllm
          port: 8001
          model: {repository: acme/small, revision: v2, size_gib: 1, served_as: small, source: ours}
          gate:
            workload: {pp: [128], tg: [16], depth: [0, 1024], concurrency: [1, 4]}
            thresholds: {tg16@pp128 d1024 c4: {min: 10}}
"""


@dataclass
class NamedHost:
    name: str


@pytest.fixture
def fleet_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "fleet.yaml"
    path.write_text(dedent(FLEET))
    monkeypatch.setenv("TINDERBOX_FLEET", str(path))
    return path


def plan(path: Path, host: str) -> HostPlan:
    return host_plan(load_fleet(path).hosts[host], load_catalog())


def test_plan_is_found_by_the_hosts_name(fleet_file: Path) -> None:
    assert plan_of(NamedHost("spark-1")) == plan_for("spark-1") == plan(fleet_file, "spark-1")
    with pytest.raises(KeyError):
        plan_of(NamedHost("spark-9"))


def test_flags_are_engines_then_profiles_then_services(fleet_file: Path) -> None:
    (service,) = plan(fleet_file, "spark-1").services
    engine = load_catalog().engines["vllm-mxfp4"]

    assert service.flags["quantization"] == "mxfp4"
    assert service.flags["max-num-batched-tokens"] == engine.profiles["throughput"]["max-num-batched-tokens"]
    assert service.flags["max-model-len"] == 4096
    assert service.flags["max-num-seqs"] == 1024
    assert "enforce-eager" not in service.flags
    assert False not in service.flags.values()


def test_readiness_is_the_engines_with_the_services_keys_over_it(fleet_file: Path) -> None:
    engine = load_catalog().engines["vllm-mxfp4"].readiness
    text = fleet_file.read_text().replace("      profile: throughput\n", "      readiness: {start_minutes: 0.5}\n")
    fleet_file.write_text(text)

    (service,) = plan(fleet_file, "spark-1").services

    assert service.engine.readiness == engine.model_copy(update={"start_minutes": 0.5})
    assert engine.wanted_log


def test_recipe_has_the_fleet_files_changes(fleet_file: Path) -> None:
    (service,) = plan(fleet_file, "spark-1").services
    recipe = load_catalog().images["vllm-mxfp4"]

    assert service.recipe.architecture == "12.1a"
    assert service.recipe.pins["cutlass"].commit == "11af7f02ab52c9130e422eeb4b44042fbd60c083"
    assert service.recipe.pins["cutlass"].repository == recipe.pins["cutlass"].repository
    assert service.recipe.pins["vllm"] == recipe.pins["vllm"]
    assert service.recipe.packages == {**recipe.packages, "llama-benchy": "0.5.0"}
    assert service.recipe.base == recipe.base


def test_encodings_and_gate_come_from_the_catalog(fleet_file: Path) -> None:
    (service,) = plan(fleet_file, "spark-1").services

    assert sorted(service.encodings) == ["cl100k_base.tiktoken", "o200k_base.tiktoken"]
    assert service.gate == load_catalog().gates["vllm-mxfp4-single-stream"]


def test_model_and_gate_may_be_written_out(fleet_file: Path) -> None:
    (service,) = plan(fleet_file, "spark-2").services

    assert service.name == "other"
    assert (service.model.repository, service.model.revision) == ("acme/small", "v2")
    assert service.gate is not None
    assert list(service.gate.thresholds) == ["tg16@pp128 d1024 c4"]
    assert service.encodings == {}


OWN_RECIPE = """\
fleet: office
defaults:
  services:
    gpt-oss:
      engine: vllm
      model: gpt-oss-120b
      image:
        recipe:
          template: ./recipes/mine.Dockerfile.j2
          base: ubuntu:24.04
          pins: {vllm: {repository: "https://example.org/vllm", commit: 0123456789012345678901234567890123456789}}
          size_gib: 8
          source: ours
        pins: {vllm: {commit: 11af7f02ab52c9130e422eeb4b44042fbd60c083}}
hosts:
  spark-1: {address: 10.0.0.11}
"""
OWN_TEMPLATE = """\
{% import "_site.j2" as site -%}
ARG BASE={{ base }}
FROM ${BASE}
COPY patch.diff /src/
RUN {{ site.mounts() }} {{ site.enter() }}; git fetch {{ pins.vllm.repository }} {{ pins.vllm.commit }}
"""


def test_a_recipe_may_be_written_out_with_its_template_beside_the_fleet_file(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(OWN_RECIPE)
    context = tmp_path / "recipes" / "mine"
    context.mkdir(parents=True)
    (context / "patch.diff").write_text("+1")
    (tmp_path / "recipes" / "mine.Dockerfile.j2").write_text(OWN_TEMPLATE)

    (service,) = plan(path, "spark-1").services
    build = build_of(service.recipe)

    assert build.name == "mine"
    assert sorted(build.files) == ["Dockerfile", "patch.diff", "tinderbox-image.json"]
    assert "git fetch https://example.org/vllm 11af7f02ab52c9130e422eeb4b44042fbd60c083" in build.files["Dockerfile"]


def test_host_without_a_bundle_or_simulation_says_so(fleet_file: Path) -> None:
    host = plan(fleet_file, "spark-1")

    assert host.ca_bundle_path is None
    assert not host.simulated
