"""What decides an image's name, and what its Dockerfile says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from modules.catalog import load_catalog
from modules.images import (
    Build,
    base_reference,
    build_of,
    image_key,
    image_reference,
    pinned,
    pinned_digest,
    pull_reference,
)
from modules.spec.image import GitPin, Recipe
from modules.spec.lock import Lock
from tests.unit.dockerfile_stages import LAST, stages_of

BUILT = {name: recipe for name, recipe in load_catalog().images.items() if recipe.template is not None}
MXFP4 = BUILT["vllm-mxfp4"]
RENDERED = Path(__file__).parents[1] / "samples" / "images" / "rendered"
DIGEST = "sha256:" + "a" * 64


@pytest.mark.parametrize("name", BUILT)
def test_rendering_twice_gives_the_same_name_and_every_pin_and_package_is_in_the_text(name: str) -> None:
    recipe = BUILT[name]
    build = build_of(recipe)

    assert build.tag == build_of(recipe.model_copy()).tag
    text = build.files["Dockerfile"]
    for pin in recipe.pins.values():
        assert f"{pin.repository} " in text
        assert pin.commit in text
    for package, version in recipe.packages.items():
        assert f"{package}=={version}" in text
    assert f"ARG BASE={recipe.base}\n" in text
    assert "{{" not in text
    assert "{%" not in text


@pytest.mark.parametrize("name", BUILT)
def test_a_rendered_recipe_is_as_it_was_looked_through(name: str) -> None:
    """After a meant change: TINDERBOX_RENEW=1 pytest tests/unit/test_image_build.py, and read the difference."""
    kept = RENDERED / f"{name}.Dockerfile"
    text = build_of(BUILT[name]).files["Dockerfile"]
    if os.environ.get("TINDERBOX_RENEW") == "1":
        kept.write_text(text)

    assert text == kept.read_text()


def test_no_rendered_recipe_is_kept_that_is_none() -> None:
    assert sorted(path.stem for path in RENDERED.iterdir()) == sorted(BUILT)


@pytest.mark.parametrize("name", BUILT)
def test_every_dockerfile_passes_hadolint(name: str, tmp_path: Path) -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    (tmp_path / "Dockerfile").write_text(build_of(BUILT[name]).files["Dockerfile"])

    done = subprocess.run(
        [str(hadolint), "--no-color", str(tmp_path / "Dockerfile")], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("name", BUILT)
def test_every_file_that_is_copied_is_in_the_context(name: str) -> None:
    build = build_of(BUILT[name])
    for line in build.files["Dockerfile"].splitlines():
        if line.startswith("COPY ") and "--from" not in line:
            for file in line.split()[1:-1]:
                assert file in build.files


@pytest.mark.parametrize("name", BUILT)
def test_every_step_that_fetches_has_the_sites_settings(name: str) -> None:
    text = build_of(BUILT[name]).files["Dockerfile"].replace("\\\n", " ")
    fetching = ("apt-get update", "pip install", "git clone", "submodule", "uv build")
    steps = [line for line in text.splitlines() if line.startswith("RUN ") and any(word in line for word in fetching)]

    assert steps
    for step in steps:
        assert "--mount=type=secret,id=site" in step, step
        assert "--mount=type=secret,id=authorities" in step, step
        assert ". /run/secrets/site" in step, step


@pytest.mark.parametrize(
    "change",
    [
        {"architecture": "12.1a"},
        {"base": "nvcr.io/nvidia/pytorch:26.02-py3"},
        {"packages": MXFP4.packages | {"fastsafetensors": "0.5.1"}},
        {"arguments": {"CONSTRAINTS": "apache-tvm-ffi<0.3"}},
        {"pins": MXFP4.pins | {"vllm": GitPin(repository="https://example.org/vllm", commit="f" * 40)}},
    ],
)
def test_whatever_changes_the_image_changes_its_name(change: dict[str, object]) -> None:
    assert build_of(MXFP4.model_copy(update=change)).tag != build_of(MXFP4).tag


def test_what_only_tells_of_a_recipe_does_not_change_its_name() -> None:
    told = MXFP4.model_copy(update={"source": "elsewhere", "verified": "on hardware", "size_gib": 1.0})

    assert build_of(told).tag == build_of(MXFP4).tag


def test_names_and_texts_of_files_do_not_run_together() -> None:
    assert Build("x", "b", {"a": "bc"}).digest != Build("x", "b", {"ab": "c"}).digest


def test_the_architecture_reaches_flashinfer_and_the_compilers() -> None:
    text = build_of(MXFP4).files["Dockerfile"]

    stages = stages_of(text)
    for stage in ("flashinfer", "vllm", LAST):  # where something is compiled, and where it runs
        settings = " ".join(line for line in stages[stage].lines if line.startswith("ENV "))
        assert "FLASHINFER_CUDA_ARCH_LIST=12.1f" in settings
        assert "TORCH_CUDA_ARCH_LIST=12.1f" in settings
        assert "TRITON_PTXAS_PATH=/usr/local/cuda/bin/ptxas" in settings


def test_an_image_tells_where_it_comes_from() -> None:
    told = json.loads(build_of(MXFP4).files["tinderbox-image.json"])

    assert told["architecture"] == "12.1f"
    assert told["sources"]["cutlass"]["commit"] == MXFP4.pins["cutlass"].commit


def test_a_recipe_that_lacks_what_its_template_wants_is_refused() -> None:
    with pytest.raises(UndefinedError):
        build_of(MXFP4.model_copy(update={"packages": {}, "arguments": {}}))


def test_a_pulled_recipe_is_not_built() -> None:
    with pytest.raises(ValueError, match="pulled, not built"):
        build_of(load_catalog().images["vllm-upstream"])


def pulled(reference: str, digest: str | None = None) -> Recipe:
    return Recipe(reference=reference, digest=digest, size_gib=1, source="test")


@pytest.mark.parametrize(
    ("reference", "source", "name"),
    [
        ("nvcr.io/nvidia/vllm:26.05-py3", "nvcr.io/nvidia/vllm", "tinderbox/vllm"),
        ("registry.lab:5000/python", "registry.lab:5000/python", "tinderbox/python"),
        ("python:3.11", "python", "tinderbox/python"),
    ],
)
def test_a_pulled_image_is_meant_by_the_recipes_digest_or_the_locks(reference: str, source: str, name: str) -> None:
    lock = Lock(images={reference: DIGEST})
    for recipe, known in ((pulled(reference, DIGEST), Lock()), (pulled(reference), lock)):
        assert pull_reference(reference, pinned_digest(recipe, known)) == f"{source}@{DIGEST}"
        assert image_reference(recipe, known) == f"{name}:{'a' * 12}"
    assert image_reference(pulled(reference), Lock()) == reference
    assert pull_reference(reference, None) == reference


def test_one_image_has_one_key_before_and_after_its_tag_is_resolved() -> None:
    one, other = pulled("python:3.11"), pulled("python:3.11", DIGEST)
    assert image_key(one) == image_key(one.model_copy(update={"size_gib": 2}))
    assert len({image_key(recipe) for recipe in (one, other, pulled("python:3.12"), MXFP4)}) == 4


def test_a_built_image_is_meant_by_its_content() -> None:
    assert image_reference(MXFP4, Lock()) == build_of(MXFP4).tag
    assert build_of(MXFP4).tag.startswith("tinderbox/vllm-mxfp4:")


def test_a_built_image_is_another_one_on_another_base() -> None:
    lock = Lock(images={"nvcr.io/nvidia/pytorch:26.01-py3": DIGEST})
    by_digest = pinned(MXFP4, lock)

    assert by_digest.base == f"nvcr.io/nvidia/pytorch@{DIGEST}"
    assert pinned(by_digest, Lock(images={by_digest.base: DIGEST})) == by_digest
    assert image_reference(MXFP4, lock) == build_of(by_digest).tag != build_of(MXFP4).tag
    assert pinned(MXFP4, Lock()) == MXFP4
    assert base_reference(by_digest.base, "registry.lab:5000") == f"registry.lab:5000/nvidia/pytorch@{DIGEST}"


@pytest.mark.parametrize(
    ("base", "wanted"),
    [
        ("python:3.11-slim-bookworm", "registry.lab:5000/python:3.11-slim-bookworm"),
        ("nvcr.io/nvidia/pytorch:26.01-py3", "registry.lab:5000/nvidia/pytorch:26.01-py3"),
        ("docker.io/nvidia/cuda:13.0.2", "registry.lab:5000/nvidia/cuda:13.0.2"),
        ("nvidia/cuda:13.0.2", "registry.lab:5000/nvidia/cuda:13.0.2"),
        ("localhost/mine:1", "registry.lab:5000/mine:1"),
    ],
)
def test_the_sites_registry_holds_bases_under_their_own_names(base: str, wanted: str) -> None:
    assert base_reference(base, "registry.lab:5000") == wanted
    assert base_reference(base, None) == base
