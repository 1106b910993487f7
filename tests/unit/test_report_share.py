"""Share blocks: anonymous, whole, and good for running the same elsewhere."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from modules.catalog import load_catalog
from modules.fleet import Fleet, ServicePlan, load_fleet
from modules.fleet.plan import host_plan
from modules.gating import Verdict
from modules.gating.decision import decide
from modules.gating.metrics import Measurement
from modules.reporting.baselines import baseline_path, baselines_text, fleet_baselines
from modules.reporting.measured import Figure, MeasuredService
from modules.reporting.share import (
    Share,
    ShareError,
    baseline_of,
    fleet_text,
    read_block,
    service_of,
    share_of,
    write_block,
)
from modules.reporting.share.__main__ import main
from modules.reporting.share.block import SharedResult
from modules.reporting.share.private import is_private, is_private_image
from modules.reporting.share.workloads import fleet_document, workloads_of
from modules.spec.lock import Lock
from tests.unit.gate_simulation import measured as runs
from tests.unit.release_samples import lab_gate

CATALOG = load_catalog()
DECODE, PREFILL, FIRST = "tg128@pp2048 c1", "pp2048 c1", "ttfr@pp2048 c1"
PRIVATE = (
    "basement-spark",
    "203.0.113.7",
    "margaret",
    "office",
    "/home",
    "/var",
    "10.1.2.3",
    "corp.example",
    "id_ed25519",
)
FLEET_FILE = """
fleet: office
ssh: {user: margaret, port: 2222}
secrets:
  api-key: {command: [printf, hunter2]}
defaults:
  services:
    gpt-oss:
      engine: vllm-mxfp4
      model: gpt-oss-120b
      profile: latency
      listen: 203.0.113.7
      port: 8355
      api_key: api-key
      flags: {max-model-len: 65536, enable-prefix-caching: false, seed: 7}
      image:
        pins: {flashinfer: {commit: 0123456789abcdef0123456789abcdef01234567}}
        packages: {fastsafetensors: 0.5.1}
      environment: {VLLM_LOGGING_LEVEL: INFO}
      gate: vllm-mxfp4-single-stream
hosts:
  basement-spark: {address: 203.0.113.7}
"""
OTHER_FILE = """
fleet: attic
ssh: {user: bob}
defaults:
  weights: {workers: 4}
  services:
    old: {engine: vllm, model: gpt-oss-20b}
hosts:
  attic-1: {address: 198.51.100.9, settings: {services: {old: {port: 9000}}, weights: {workers: 2}}}
  attic-2: {address: 198.51.100.10}
"""


def fleet_of(text: str, folder: Path, name: str = "fleet.yaml") -> Fleet:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return load_fleet(path)


def figure(mean: float, std: float) -> Figure:
    return Figure(mean=mean, std=std, values=(mean - std, mean, mean + std))


MEASURED = MeasuredService(
    host="basement-spark",
    service="gpt-oss",
    engine="vllm-mxfp4",
    profile="latency",
    model="gpt-oss-120b",
    port=8355,
    gpu="NVIDIA GB10",
    release="638676b59d32",
    verdict=Verdict.PASS,
    measured="2026-11-30T04:45:07Z",
    metrics={DECODE: figure(59.2187654, 0.07), PREFILL: figure(4771.75, 39.7), FIRST: figure(430.45, 3.58)},
    reasons=["spark at 203.0.113.7"],
)


def plan_in(fleet: Fleet) -> ServicePlan:
    return host_plan(next(iter(fleet.hosts.values())), CATALOG).services[0]


def shared(fleet: Fleet) -> Share:
    return share_of(next(iter(fleet.hosts.values())), plan_in(fleet), Lock(), MEASURED, "580.95.05")


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return fleet_of(FLEET_FILE, tmp_path)


def test_a_block_tells_what_was_run_and_what_came_out(fleet: Fleet) -> None:
    text = write_block(shared(fleet))
    for words in (
        "gpu: NVIDIA GB10", "driver: 580.95.05", "b5c939de8f754692c1647ca79fbf85e8c1e70f8a", "max-model-len: 65536",
        "0123456789abcdef0123456789abcdef01234567", "fastsafetensors: 0.5.1", "mean: 59.2188, std: 0.07, runs: 3",
        "llama-benchy --model openai/gpt-oss-120b", "--runs 5 --exact-tg",
    ):  # fmt: skip
        assert words in text
    assert len(text) < 4000


def test_a_block_holds_no_host_name_address_user_path_or_key(fleet: Fleet) -> None:
    text = write_block(shared(fleet)).lower()
    for words in (*PRIVATE, "hunter2", "api-key", "8355", "2222", os.environ.get("USER", "margaret"), str(Path.home())):
        assert words.lower() not in text


def test_private_values_are_left_out_and_named(tmp_path: Path) -> None:
    private = FLEET_FILE.replace(
        "seed: 7", "chat-template: /home/margaret/x.jinja, otlp-traces-endpoint: 'http://10.1.2.3:4317'"
    )
    private = private.replace(
        "VLLM_LOGGING_LEVEL: INFO", "TITLE: basement-spark, TRACES: trace.corp.example/a, LEVEL: INFO"
    )
    private = private.replace("trace.corp.example/a", "https://trace.corp.example/a")
    share = shared(fleet_of(private, tmp_path))
    assert set(share.left_out) == {
        "flags.chat-template", "flags.otlp-traces-endpoint", "environment.TITLE", "environment.TRACES",
    }  # fmt: skip
    text = write_block(share).lower()
    assert not [words for words in PRIVATE if words in text]
    assert share.environment == {"LEVEL": "INFO"}
    # The reader is not made to switch off what was only left out.
    assert "chat-template" not in service_of(share, CATALOG)["flags"]
    assert "left out: flags.chat-template" in (baseline_of(share).caveat or "")


def test_the_catalogs_own_values_are_never_private() -> None:
    for name, engine in CATALOG.engines.items():
        for profile, flags in engine.profiles.items():
            for flag, value in {**engine.flags, **flags}.items():
                assert not is_private(str(value)), f"{name} {profile} {flag}"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("base: nvcr", "base: registry.corp.example/nvidia/pytorch:26.01"),
        (
            "pins",
            f"pins: {{vllm: {{repository: 'https://git.corp.example/vllm', commit: {'0a' * 20}}}}}",
        ),
        ("packages", "packages: {fastsafetensors: '0.5.0 --index http://10.1.2.3'}"),
    ],
)
def test_an_image_of_the_owners_own_is_refused(tmp_path: Path, key: str, value: str) -> None:
    lines = [line for line in FLEET_FILE.splitlines() if not line.strip().startswith(("pins:", "packages:"))]
    at = next(index for index, line in enumerate(lines) if line.strip() == "image:")
    lines.insert(at + 1, f"        {value}")
    with pytest.raises(ShareError, match=r"image\."):
        shared(fleet_of("\n".join(lines), tmp_path))
    assert key


def test_an_image_of_a_recipe_that_is_written_out_is_refused(tmp_path: Path) -> None:
    lines = [line for line in FLEET_FILE.splitlines() if not line.strip().startswith(("pins:", "packages:"))]
    at = next(index for index, line in enumerate(lines) if line.strip() == "image:")
    lines.insert(at + 1, "        recipe: {reference: docker.io/vllm/vllm-openai:v1, size_gib: 1, source: ours}")
    with pytest.raises(ShareError, match="written out in your fleet file"):
        shared(fleet_of("\n".join(lines), tmp_path))


def test_a_service_with_a_draft_model_is_refused(fleet: Fleet) -> None:
    plan = plan_in(fleet)
    with pytest.raises(ShareError, match="has a draft model"):
        share_of(next(iter(fleet.hosts.values())), replace(plan, draft=plan.model), Lock(), MEASURED)


def test_a_service_without_figures_has_nothing_to_share(fleet: Fleet) -> None:
    host = next(iter(fleet.hosts.values()))
    with pytest.raises(ShareError, match="no figures"):
        share_of(host, plan_in(fleet), Lock(), MEASURED.model_copy(update={"metrics": {}}))
    with pytest.raises(ShareError, match="no figures"):
        share_of(host, replace(plan_in(fleet), gate=None), Lock(), MEASURED)


def test_a_loose_revision_is_shared_as_the_commit_that_the_lock_names(tmp_path: Path) -> None:
    model = "{repository: someone/else, size_gib: 1, served_as: else, source: us}"
    fleet = fleet_of(FLEET_FILE.replace("model: gpt-oss-120b", f"model: {model}"), tmp_path)
    host, plan, commit = next(iter(fleet.hosts.values())), plan_in(fleet), "a" * 40
    with pytest.raises(ShareError, match="lock"):
        share_of(host, plan, Lock(), MEASURED)
    share = share_of(host, plan, Lock(models={"someone/else@main": commit}), MEASURED)
    assert share.model.commit == commit
    assert service_of(share, CATALOG)["model"]["revision"] == commit


def test_a_block_is_read_back_as_it_was_written(fleet: Fleet) -> None:
    share = shared(fleet)
    assert read_block(write_block(share)) == share


@pytest.mark.parametrize(
    "mangled",
    [
        lambda text: "Hello,\n\n" + text + "\nwhat do you get?\n",
        lambda text: "".join(f"> {line}\n" for line in text.splitlines()),
        lambda text: "".join(f"    {line}\n" for line in text.splitlines()),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "   \n\n"),
    ],
    ids=["in a letter", "quoted", "indented", "carriage returns", "blank lines"],
)
def test_what_forums_do_to_a_block_does_no_harm(fleet: Fleet, mangled: object) -> None:
    share = shared(fleet)
    assert callable(mangled)
    assert read_block(mangled(write_block(share))) == share


def test_a_block_that_lost_or_changed_something_is_refused(fleet: Fleet) -> None:
    text = write_block(shared(fleet))
    lines = text.splitlines(keepends=True)
    for broken in (
        text.replace("59.2188", "69.2188"),
        "".join(lines[:5] + lines[6:]),
        "".join(lines[:-1]),
        "",
        text * 2,
    ):
        with pytest.raises(ShareError):
            read_block(broken)


def test_a_block_of_a_later_version_says_so(fleet: Fleet) -> None:
    with pytest.raises(ShareError, match="newer Tinderbox"):
        read_block(write_block(shared(fleet)).replace("share 1 ", "share 2 "))


def test_round_trip_to_another_fleet(fleet: Fleet, tmp_path: Path) -> None:
    mine = plan_in(fleet)
    share = read_block(write_block(shared(fleet)))
    other = fleet_of(fleet_text(share, CATALOG, yaml.safe_load(OTHER_FILE), "fast"), tmp_path, "fast.yaml")
    assert (other.name, list(other.hosts)) == ("fast", ["attic-1", "attic-2"])
    for host in other.hosts.values():
        plan = host_plan(host, CATALOG)
        theirs = plan.services[0]
        assert [one.name for one in plan.services] == ["fast"]
        assert theirs.flags == mine.flags
        assert theirs.recipe == mine.recipe
        assert theirs.model == mine.model
        assert theirs.service.environment == mine.service.environment
        assert theirs.gate is not None
        assert mine.gate is not None
        assert theirs.gate.workload == mine.gate.workload
    assert other.hosts["attic-1"].settings.weights.workers == 2
    assert other.hosts["attic-1"].ssh.user == "bob"
    # Nothing of how the sharer is reached comes along.
    assert theirs.service.listen == "127.0.0.1"


def test_a_pulled_image_is_shared_and_reproduced_by_its_digest(tmp_path: Path) -> None:
    fleet = fleet_of(
        FLEET_FILE.replace("engine: vllm-mxfp4", "engine: vllm")
        .replace("flags: {max-model-len: 65536, enable-prefix-caching: false, seed: 7}", "flags: {seed: 7}")
        .replace("pins: {flashinfer: {commit: 0123456789abcdef0123456789abcdef01234567}}", "{}")
        .replace("        packages: {fastsafetensors: 0.5.1}\n", "")
        .replace("        {}\n", ""),
        tmp_path,
    )
    host, plan, digest = next(iter(fleet.hosts.values())), plan_in(fleet), "sha256:" + "0a" * 32
    assert plan.recipe.reference is not None
    share = share_of(host, plan, Lock(images={plan.recipe.reference: digest}), MEASURED)
    assert service_of(share, CATALOG)["image"] == {"digest": digest}
    moved = share.image.model_copy(update={"reference": "docker.io/somebody/vllm:1"})
    with pytest.raises(ShareError, match="pulls"):
        service_of(share.model_copy(update={"image": moved}), CATALOG)


def test_only_what_differs_from_the_catalog_is_written(fleet: Fleet) -> None:
    service = service_of(shared(fleet), CATALOG)
    assert service["model"] == "gpt-oss-120b"
    assert service["flags"] == {"max-model-len": 65536, "seed": 7, "enable-prefix-caching": False}
    assert service["image"]["packages"] == {"fastsafetensors": "0.5.1"}
    assert list(service["image"]["pins"]) == ["flashinfer"]


def test_the_gate_passes_what_was_measured_and_fails_a_wrong_backend(fleet: Fleet, tmp_path: Path) -> None:
    share = shared(fleet)
    other = fleet_of(fleet_text(share, CATALOG, yaml.safe_load(OTHER_FILE), "fast"), tmp_path, "fast.yaml")
    gate = host_plan(other.hosts["attic-1"], CATALOG).services[0].gate
    assert gate is not None

    def verdict(decode: float, prefill: float, first: float) -> Verdict:
        values = {DECODE: decode, PREFILL: prefill, FIRST: first}
        metrics = {name: runs([value * 0.999, value, value * 1.001]) for name, value in values.items()}
        return decide(gate, Measurement(metrics, {})).judgement.verdict

    assert verdict(59.2, 4771.0, 430.0) is Verdict.PASS
    assert verdict(55.0, 4771.0, 430.0) is Verdict.WARN
    assert verdict(31.6, 4341.0, 470.0) is Verdict.FAIL
    assert verdict(59.2, 4771.0, 900.0) is Verdict.FAIL


def test_runs_that_scatter_much_give_one_bound_and_decode_stands_first(fleet: Fleet) -> None:
    share = shared(fleet)
    wild = share.results[PREFILL].model_copy(update={"std": share.results[PREFILL].mean})
    share = share.model_copy(update={"results": {PREFILL: wild, **{DECODE: share.results[DECODE]}}})
    thresholds = service_of(share, CATALOG)["gate"]["thresholds"]
    assert list(thresholds) == [DECODE, PREFILL]
    assert set(thresholds[DECODE]) == {"min", "warn_min"}
    assert thresholds[PREFILL] == {"min": pytest.approx(477.2, abs=0.1)}


def test_prefill_and_the_first_answer_have_the_same_bounds(fleet: Fleet) -> None:
    share = shared(fleet)
    speed, time = (
        SharedResult(mean=2e4, std=3e3, runs=3, unit="tok/s"),
        SharedResult(mean=100, std=15, runs=3, unit="ms"),
    )
    share = share.model_copy(update={"results": {PREFILL: speed, FIRST: time}})
    thresholds = service_of(share, CATALOG)["gate"]["thresholds"]
    for below, above in (("min", "max"), ("warn_min", "warn_max")):
        assert thresholds[FIRST][above] / 100 == pytest.approx(2e4 / thresholds[PREFILL][below], rel=0.001)


def test_a_baseline_bears_the_blocks_figures(fleet: Fleet, tmp_path: Path) -> None:
    baseline = baseline_of(shared(fleet))
    assert (baseline.figures[DECODE].value, baseline.figures[DECODE].std) == (59.2188, 0.07)
    assert baseline.source == "share block of 2026-11-30, measured on NVIDIA GB10"
    assert "--max-model-len 65536" in (baseline.settings or "")
    path = tmp_path / "fast.yaml"
    baseline_path(path).write_text(baselines_text({"fast": baseline}), encoding="utf-8")
    assert fleet_baselines(path) == {"fast": baseline}
    assert fleet_baselines(tmp_path / "none.yaml") == {}


def test_simulated_is_said_in_the_block_and_in_its_baseline(fleet: Fleet) -> None:
    share = shared(fleet)
    lab = share.model_copy(update={"hardware": share.hardware.model_copy(update={"simulated": True})})
    assert "simulated: true" in write_block(lab)
    assert "simulated" in (baseline_of(lab).caveat or "")
    assert "simulated" not in write_block(share)


def test_what_this_catalog_has_not_is_refused(fleet: Fleet) -> None:
    share = shared(fleet)
    with pytest.raises(ShareError, match="no engine"):
        service_of(share.model_copy(update={"engine": "other"}), CATALOG)
    with pytest.raises(ShareError, match="source trees"):
        service_of(share.model_copy(update={"image": share.image.model_copy(update={"pins": {}})}), CATALOG)


@pytest.mark.parametrize(
    "text",
    [
        *("/home/x", "a=/srv/models", "~/models", "../up", "x:/etc/y"),
        *("10.0.0.1", "fe80::1", "me@example.org", "http://box/", "nas.local"),
    ],
)
def test_private_texts(text: str) -> None:
    assert is_private(text)


@pytest.mark.parametrize(
    "text",
    [
        *("moe,qkv,o,lm_head", "0.70", "65536", "openai/gpt-oss-120b", "26.01"),
        *("https://github.com/a/b", "a<3.6 b>=0.115.0,<0.137.0"),
    ],
)
def test_public_texts(text: str) -> None:
    assert not is_private(text)


@pytest.mark.parametrize(
    ("reference", "private"),
    [
        ("nvcr.io/nvidia/pytorch:26.01-py3", False),
        ("docker.io/lmsysorg/sglang:x", False),
        ("python:3.11-slim", False),
        ("lmsysorg/sglang:spark", False),
        ("registry.lab:5000/python:3.11", True),
        ("localhost/python", True),
    ],
)
def test_private_registries(reference: str, private: bool) -> None:
    assert is_private_image(reference) is private


def test_the_command_makes_a_fleet_file_and_a_baseline(
    fleet: Fleet, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    block, base = tmp_path / "post.txt", tmp_path / "attic.yaml"
    block.write_text(write_block(shared(fleet)), encoding="utf-8")
    base.write_text(OTHER_FILE, encoding="utf-8")
    words = ["read", str(block), "--name", "fast", "--onto", str(base)]
    assert main(words) == 0
    assert "2 host(s)" in capsys.readouterr().out
    assert load_fleet(tmp_path / "fast.yaml").name == "fast"
    assert list(fleet_baselines(tmp_path / "fast.yaml")) == ["fast"]
    assert main(words) == 1
    assert "there already" in capsys.readouterr().err


def test_nothing_stays_of_a_fleet_file_that_is_none(fleet: Fleet, tmp_path: Path) -> None:
    block, base = tmp_path / "post.txt", tmp_path / "attic.yaml"
    block.write_text(write_block(shared(fleet)), encoding="utf-8")
    base.write_text(OTHER_FILE.replace("workers: 4", "workers: 0"), encoding="utf-8")
    assert main(["read", str(block), "--name", "fast", "--onto", str(base)]) == 1
    assert not list(tmp_path.glob("fast.*"))


PLANTED = "zanzibar"
PLANTED_FLEET = """
fleet: {word}-fleet
ssh: {{user: {word}, port: 2222, key: {key}, known_hosts: {known}}}
secrets:
  {word}-key: {{env: ZANZIBAR_KEY}}
defaults:
  weights: {{home: /srv/{word}/models}}
  network:
    ca_bundle: {ca}
    proxy: {{http: 'http://proxy.{word}.example:3128', no_proxy: [{word}.example, 10.9.8.7]}}
    pip_index: https://pypi.{word}.example/simple
    hub: https://hub.{word}.example
    registry: registry.{word}.example:5000
  services:
    {word}-service:
      engine: vllm-mxfp4
      model: gpt-oss-120b
      listen: 10.9.8.7
      port: 8355
      api_key: {word}-key
      flags:
        {{chat-template: /srv/{word}/t.jinja, served-by: {word}, at: '10.9.8.7:80', home: ~/x, mail: 'me@{word}.org',
          seed: 7}}
      environment:
        {{OWNER: {word}, CACHE: /srv/{word}, TRACE: 'https://trace.{word}.example/x', ZANZIBAR_MODE: dark, LEVEL: INFO}}
      gate:
        workload: {{pp: [2048], tg: [128], runs: 5}}
        answers:
          source: {word}
          questions: {{where: {{prompt: 'Where is {word}?', contains: [{word}]}}}}
        thresholds: {{'{decode}': {{min: 50}}}}
        source: {word}
groups:
  {word}-rack: {{}}
hosts:
  {word}: {{address: 10.9.8.7, groups: [{word}-rack]}}
"""


def test_a_word_that_is_planted_everywhere_stands_nowhere_in_the_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZANZIBAR_KEY", f"{PLANTED}-hunter2")
    files = {name: tmp_path / f"{PLANTED}-{name}" for name in ("key", "known", "ca")}
    for path in files.values():
        kind = "CERTIFICATE" if path.name.endswith("ca") else "OPENSSH PRIVATE KEY"
        path.write_text(f"-----BEGIN {kind}-----\n{PLANTED}\n-----END {kind}-----\n", encoding="utf-8")
    fleet = fleet_of(PLANTED_FLEET.format(word=PLANTED, decode=DECODE, **files), tmp_path)
    measured = MEASURED.model_copy(
        update={"host": PLANTED, "service": f"{PLANTED}-service", "reasons": [f"{PLANTED} at 10.9.8.7, /srv"]}
    )
    host = next(iter(fleet.hosts.values()))
    share = share_of(host, plan_in(fleet), Lock(), measured, "580.95.05")
    text = write_block(share).lower()
    for word in (PLANTED, "10.9.8.7", "/srv", "~/", "8355", "2222", "hunter2", "3128", "/trace", str(tmp_path).lower()):
        assert word not in text, word
    assert share.flags["seed"] == 7
    assert share.environment == {"LEVEL": "INFO"}
    assert set(share.left_out) == {
        *(f"flags.{name}" for name in ("chat-template", "served-by", "at", "home", "mail")),
        *(f"environment.{name}" for name in ("OWNER", "CACHE", "TRACE", "?")),
        "gate.answers",
    }
    # What others make of it bears none of it either.
    assert PLANTED not in fleet_text(share, CATALOG, yaml.safe_load(OTHER_FILE), "fast")
    assert PLANTED not in baselines_text({"fast": baseline_of(share)})


def test_every_workload_is_shared_and_reproduced(tmp_path: Path) -> None:
    lab = FLEET_FILE.replace("engine: vllm-mxfp4", "engine: vllm-cpu").replace("gpt-oss-120b", "lab-gpt-oss-tiny")
    lines = [line for line in lab.splitlines() if not line.strip().startswith(("image:", "pins:", "packages:"))]
    text = "\n".join(lines).replace("profile: latency", "profile: balanced")
    fleet = fleet_of(text.replace("vllm-mxfp4-single-stream", "lab-everything"), tmp_path)
    mine = plan_in(fleet)
    assert mine.gate is not None
    names = ("tg16@pp512 c1", "random output throughput", "random p99 itl", "cold start launch to ready")
    measured = MEASURED.model_copy(update={"metrics": {name: figure(50.0, 0.0) for name in names}})
    share = share_of(next(iter(fleet.hosts.values())), mine, Lock(models={}), measured, None)
    assert [command.split()[0] for command in share.workloads.commands] == ["llama-benchy", "vllm", "vllm"]
    assert "--dataset-path lab-sharegpt.json" in share.workloads.commands[2]

    text = fleet_text(read_block(write_block(share)), CATALOG, yaml.safe_load(OTHER_FILE), "fast")
    other = fleet_of(text, tmp_path, "fast.yaml")
    theirs = host_plan(other.hosts["attic-1"], CATALOG).services[0]
    assert theirs.gate is not None
    for field in ("workload", "random", "sharegpt", "answers", "cold_start"):
        assert getattr(theirs.gate, field) == getattr(mine.gate, field), field
    assert theirs.answers == mine.answers
    thresholds = theirs.gate.thresholds
    assert thresholds["random output throughput"].min == pytest.approx(33.33, abs=0.01)
    # A time by the same factor: 67 % of the speed is half as long again.
    assert thresholds["cold start launch to ready"].max == pytest.approx(75.0, abs=0.01)
    # Single requests decide it: told, and not asked for.
    assert "random p99 itl" not in thresholds
    assert baseline_of(share).figures["cold start launch to ready"].unit == "s"


def test_a_gate_from_the_controller_is_reproduced_from_there() -> None:
    gate = lab_gate(client="controller")
    shared = workloads_of(gate, "openai/gpt-oss-120b", "gpt-oss-120b")
    assert fleet_document(shared)["client"] == "controller"
    assert shared.commands[0].endswith("# from the controller, over an SSH tunnel")
    assert "client" not in fleet_document(workloads_of(lab_gate(), "openai/gpt-oss-120b", "gpt-oss-120b"))
