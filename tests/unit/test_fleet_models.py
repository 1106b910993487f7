"""Models of a fleet file's own, models that one Spark can not hold, and flags that nobody knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from modules.catalog import load_catalog
from modules.fleet import FleetError, load_fleet
from modules.fleet.plan import host_plan

OWN = """\
fleet: office
models:
  small:
    repository: acme/small-model
    served_as: small
    flags:
      vllm: {tool-call-parser: hermes, enable-auto-tool-choice: true}
    context: 32768
    source: ours
defaults:
  services:
    chat: {engine: vllm, model: small}
hosts:
  spark-1: {address: 10.0.0.11}
"""


def problems(text: str, folder: Path) -> list[str]:
    path = folder / "office.yaml"
    path.write_text(text)
    with pytest.raises(FleetError) as refused:
        load_fleet(path)
    return [f"{one.origin.line}: {one.what}; {one.todo}" for one in refused.value.problems]


def remarks(text: str, folder: Path) -> list[str]:
    path = folder / "office.yaml"
    path.write_text(text)
    return [f"{one.origin.line}: {one.what}; {one.todo}" for one in load_fleet(path).remarks]


def test_a_service_names_a_model_of_its_own_file(tmp_path: Path) -> None:
    path = tmp_path / "office.yaml"
    path.write_text(OWN)
    plan = host_plan(load_fleet(path).hosts["spark-1"], load_catalog()).services[0]

    assert plan.model.repository == "acme/small-model"
    assert plan.flags["tool-call-parser"] == "hermes"
    assert plan.flags["max-model-len"] == 32768
    assert load_fleet(path).remarks == ()


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("tool-call-parser: hermes", "seed: much", "7: --seed takes a number, and 'much' is none; correct it"),
        ("model: small}", "model: smal}", "12: unknown model 'smal'; did you mean small?"),
        ("  small:\n", "  gpt-oss-20b:\n", "3: the catalog has a model of this name; choose another name"),
        ("    context:", "    token: hub\n    context:", "8: this is no name of a secret of this fleet"),
        ("    context:", "    encodings: [none]\n    context:", "8: unknown encoding 'none'"),
        ("      vllm:", "      wllm:", "7: unknown engine 'wllm'; did you mean vllm?"),
        ("context: 32768", "context: 0", "8: out of range: must be more than 0"),
        ("    source: ours\n", "", "3: missing"),
    ],
)
def test_a_wrong_model_is_told_with_its_place(before: str, after: str, told: str, tmp_path: Path) -> None:
    assert before in OWN
    found = problems(OWN.replace(before, after), tmp_path)

    assert any(line.startswith(told) for line in found), found


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("minimax-m2-7-nvfp4", "nvidia/MiniMax-M2.7-NVFP4 needs 2 Sparks (130 GiB of weights)"),
        ("nemotron-3-ultra-550b-a55b-nvfp4", "NVFP4 needs 4 Sparks (352 GiB of weights)"),
    ],
)
def test_a_model_that_one_spark_can_not_hold_is_refused_on_one(model: str, told: str, tmp_path: Path) -> None:
    text = OWN.replace("model: small", f"model: {model}")

    assert any(told in line and "spread over 1" in line for line in problems(text, tmp_path))
    # Where somebody knows better.
    assert remarks(text.replace(f"model: {model}", f"model: {model}, memory_plan: warn"), tmp_path) == []


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ("max-num-sequences: 4", "no flag --max-num-sequences of engine vllm; did you mean max-num-seqs?"),
        ("tp: 1", "no flag --tp of engine vllm; did you mean tensor-parallel-size?"),
        ("tool-call-parser: qwen3coder", "for --tool-call-parser of engine vllm; did you mean qwen3_coder?"),
        ("entirely-new: true", "no flag --entirely-new of engine vllm; "),
    ],
)
def test_an_unknown_flag_is_told_and_taken(flags: str, told: str, tmp_path: Path) -> None:
    text = OWN.replace("model: small", f"model: small, flags: {{{flags}}}")
    found = remarks(text, tmp_path)

    assert len(found) == 1
    assert found[0].startswith("12: the catalog knows ")
    assert told in found[0]


@pytest.mark.parametrize("flags", ["max-num-seqs: 4", "speculative-config.method: mtp", "max-num-sequences: false"])
def test_a_known_flag_is_not_told(flags: str, tmp_path: Path) -> None:
    assert remarks(OWN.replace("model: small", f"model: small, flags: {{{flags}}}"), tmp_path) == []


def test_flags_of_another_image_are_its_own(tmp_path: Path) -> None:
    image = "image: {recipe: {reference: 'docker.io/acme/vllm:1', source: ours}}"

    assert remarks(OWN.replace("model: small", f"model: small, {image}, flags: {{entirely-new: true}}"), tmp_path) == []


def test_an_own_models_odd_flags_are_told(tmp_path: Path) -> None:
    found = remarks(OWN.replace("hermes", "hermess"), tmp_path)

    assert len(found) == 1
    assert found[0].startswith("7: --tool-call-parser does not take 'hermess', as far as the catalog knows; ")


def test_no_gate_measures_what_generates_nothing(tmp_path: Path) -> None:
    text = OWN.replace("model: small", "model: qwen3-embedding-4b, gate: vllm-mxfp4-single-stream")

    assert any("generates none (task: embed)" in line for line in problems(text, tmp_path))
