"""What the typed models take, refuse and compute."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from modules.spec.architecture import ARCHITECTURES
from modules.spec.engine import Engine
from modules.spec.fleet import Host, Ssh
from modules.spec.gate import BenchyWorkload, Gate
from modules.spec.image import Recipe
from modules.spec.lock import Lock
from modules.spec.model import Model
from modules.spec.network import AptRepository, Network, Proxy
from modules.spec.release import Release
from modules.spec.secret import SecretReference
from modules.spec.settings import Cuda, HostSettings, Runtime, Service, Weights

COMMIT = "7554e4a32b15929289aa80e8bc8a4e5f6f779407"
REPOSITORY = {"uri": "https://m.example/c", "key_url": "https://m.example/k"}
PIN = {"repository": "https://git.example/x", "commit": COMMIT}
BUILT = {"template": "x.Dockerfile.j2", "base": "debian:12", "size_gib": 1, "source": "ours"}
SERVICE = {"engine": "vllm", "model": "gpt-oss-20b"}


def faults(model: type[BaseModel], fields: dict[str, Any]) -> list[str]:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(fields)
    return [error["msg"] for error in caught.value.errors()]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_only_the_spellings_with_fp4_instructions_for_gb10_are_taken(architecture: str) -> None:
    if architecture in {"12.1f", "12.1a"}:
        assert Cuda.model_validate({"architecture": architecture}).architecture == architecture
    else:
        (message,) = faults(Cuda, {"architecture": architecture})
        assert "use 12.1f (or 12.1a)" in message


@pytest.mark.parametrize("architecture", ["", "sm_121", "121f", "12.1F", "10.0a", "native"])
def test_other_words_are_no_architecture(architecture: str) -> None:
    assert "unknown architecture" in faults(Cuda, {"architecture": architecture})[0]


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        (Ssh, {"port": 0}),
        (Ssh, {"port": 65536}),
        (Host, {"address": "10.0.0.11/24"}),
        (Host, {"address": "-oProxyCommand=x"}),
        (Host, {"groups": ["Big"]}),
        (Service, {**SERVICE, "port": 1023}),
        (Service, {**SERVICE, "port": 65536}),
        (Service, {**SERVICE, "listen": "everywhere"}),
        (Service, {**SERVICE, "environment": {"A-B": "x"}}),
        (Service, {**SERVICE, "flags": {"--port": 1}}),
        (Service, {**SERVICE, "flags": {"a": {}}}),
        (Service, {**SERVICE, "flags": {"a": None}}),
        (Weights, {"home": "cache"}),
        (Weights, {"workers": 0}),
        (Runtime, {"log_max_size": "100 MB"}),
        (Cuda, {"package": "cuda"}),
        (Cuda, {"package": "cuda-drivers"}),
        (Proxy, {"http": "proxy.example.net:3128"}),
        (Network, {"registry": "https://registry.example.net"}),
        (Network, {"hub": "hub.lab"}),
        (HostSettings, {"services": {"A": SERVICE}}),
        (Model, {"repository": "gpt-oss", "size_gib": 1, "served_as": "x", "source": "y"}),
        (Lock, {"models": {"a/b@main": "main"}}),
        (Lock, {"images": {"x:1": "sha256:12"}}),
        (BenchyWorkload, {"pp": []}),
        (BenchyWorkload, {"runs": 1}),
        (Gate, {"thresholds": {}}),
    ],
)
def test_values_out_of_bounds_are_refused(model: type[BaseModel], fields: dict[str, Any]) -> None:
    assert len(faults(model, fields)) >= 1


@pytest.mark.parametrize(
    ("model", "fields", "message"),
    [
        (AptRepository, REPOSITORY, "exactly one of fingerprint, fingerprint_file"),
        (
            AptRepository,
            {**REPOSITORY, "fingerprint": "A" * 40, "fingerprint_file": "x"},
            "exactly one of fingerprint, fingerprint_file",
        ),
        (SecretReference, {}, "exactly one of env, file, command (got none)"),
        (SecretReference, {"env": "A", "file": "b"}, "exactly one of env, file, command (got env, file)"),
        (Recipe, {"size_gib": 1, "source": "ours"}, "either built (template) or pulled (reference)"),
        (Recipe, {**BUILT, "reference": "x:1"}, "either built (template) or pulled (reference)"),
        (Recipe, {**BUILT, "base": None}, "needs its base"),
        (Recipe, {**BUILT, "digest": "sha256:" + "0" * 64}, "has no digest beforehand"),
        (
            Recipe,
            {**BUILT, "pins": {"x": PIN}, "dead_pins": [{"commit": COMMIT, "reason": "gone"}]},
            f"{COMMIT} can not be built: gone",
        ),
        (Gate, {"thresholds": {"tg128@pp2048 c1": {}}}, "at least one of min, max, warn_min, warn_max"),
        (Gate, {"thresholds": {"tg64@pp2048 c1": {"min": 1}}}, "does not measure this: it measures"),
        (HostSettings, {"services": {"aa": SERVICE, "bb": SERVICE}}, "services aa and bb both want port 8000"),
    ],
)
def test_broken_rules_say_what_is_wrong(model: type[BaseModel], fields: dict[str, Any], message: str) -> None:
    assert any(message in told for told in faults(model, fields))


def test_every_model_refuses_unknown_keys() -> None:
    for model in (Ssh, Host, Cuda, Network, Lock, Engine, BenchyWorkload, SecretReference):
        errors = faults(model, {"no_such_key": 1})
        assert "Extra inputs are not permitted" in errors


def test_metrics_are_every_cell_of_the_matrix() -> None:
    workload = BenchyWorkload(pp=(512, 2048), tg=(32, 128), depth=(0, 4096), concurrency=(1, 8))
    metrics = workload.metrics()

    assert len(metrics) == len(set(metrics)) == (2 + 2 + 2 * 2) * 2 * 2
    for name in ("pp512 c1", "tg128@pp2048 c8", "ttfr@pp2048 d4096 c1", "tg32@pp512 d4096 c8"):
        assert name in metrics


def test_flags_keep_their_kinds() -> None:
    flags = {"bare": True, "off": False, "count": 2, "share": 0.7, "name": "x", "many": ["a", "b"]}
    service = Service.model_validate({**SERVICE, "flags": flags})

    assert service.flags == {**flags, "many": ("a", "b")}
    assert service.flags["bare"] is True
    assert type(service.flags["count"]) is int


def test_release_id_depends_on_everything_and_on_nothing_else() -> None:
    fields: dict[str, Any] = {
        "service": "gpt-oss",
        "engine": "vllm",
        "profile": "latency",
        "image": "tinderbox/vllm:0123456789ab",
        "model": "openai/gpt-oss-20b",
        "commit": COMMIT,
        "command": ("vllm", "serve"),
        "environment": {"A": "1"},
        "unit": "[Unit]",
    }
    release = Release.model_validate(fields)
    assert release.id == Release.model_validate(fields).id
    assert len(release.id) == 12

    changes = ({"image": "x"}, {"commit": "0" * 40}, {"command": ("vllm",)}, {"environment": {"A": "2"}}, {"unit": ""})
    others = {Release.model_validate({**fields, **change}).id for change in changes}
    assert len(others | {release.id}) == len(changes) + 1


def test_spec_imports_nothing_else_of_the_house() -> None:
    folder = Path(__file__).resolve().parents[2] / "modules" / "spec"
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                assert name.startswith("modules.spec") or not name.startswith(("modules", "roles", "pyinfra")), path
