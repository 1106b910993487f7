from __future__ import annotations

from pathlib import Path

import pytest

from modules.hostside import build_image, docker_cli, pull_image
from modules.hostside.build_steps import BuildSteps, PullLayers

SAMPLE = Path(__file__).parents[1] / "samples" / "images" / "buildkit-20.10.txt"


def heard(*lines: str) -> BuildSteps:
    steps = BuildSteps()
    for line in lines:
        steps.hear(line)
    return steps


def test_a_whole_build_ends_with_all_steps_done() -> None:
    steps = heard(*SAMPLE.read_text().splitlines(keepends=True))

    assert (steps.done, steps.total) == (3, 3)


def test_writing_the_image_is_told_and_is_no_step() -> None:
    text = SAMPLE.read_text()

    assert heard(*text.split("#7 DONE")[0].splitlines()).step == "writing the image"
    assert heard(*text.splitlines()).step == "building"
    assert heard(*text.splitlines()).total == 3


def test_a_step_is_told_by_its_own_words_without_what_all_steps_have() -> None:
    upto = SAMPLE.read_text().split("#5 DONE")[0].splitlines()

    steps = heard(*upto)

    assert steps.step == "RUN uv pip install --no-deps torch==2.13.0"
    assert (steps.done, steps.total) == (1, 3)


def test_stages_are_named_and_their_steps_add_up() -> None:
    steps = heard(
        "#5 [sources 1/2] FROM base", "#5 DONE 1.0s", "#6 [wheels 2/4] RUN uv build .", "#7 [sources 2/2] RUN git clone"
    )

    assert steps.step == "sources: RUN git clone"
    assert (steps.done, steps.total) == (1, 6)


def test_cached_steps_count_and_failed_ones_do_not_stay() -> None:
    steps = heard("#5 [1/3] FROM base", "#5 CACHED", "#6 [2/3] RUN make", "#6 ERROR: executor failed running")

    assert (steps.done, steps.step) == (2, "building")


def test_a_step_that_buildkit_tells_again_is_not_counted_again() -> None:
    steps = heard("#5 [1/2] FROM base", "#5 DONE 1s", "#5 [1/2] FROM base", "#5 DONE 1s")

    assert (steps.done, steps.total) == (1, 2)


def test_how_far_ninja_is_inside_of_a_step_is_told() -> None:
    steps = heard("#9 [wheels 5/6] RUN uv build", "#9 312.4 [123/456] Building CUDA object x.cu.o")
    assert steps.step == "wheels: RUN uv build [123/456]"

    steps.hear("#9 DONE 900.0s")
    assert steps.step == "building"


def test_a_long_step_is_cut() -> None:
    assert len(heard(f"#9 [1/1] RUN {'x' * 500}").step) == 60


def test_layers_of_a_pull_are_counted_once_they_are_here() -> None:
    layers = PullLayers()
    for line in (
        "26.01-py3: Pulling from nvidia/pytorch",
        "2b9585699ff1: Pulling fs layer",
        "18218423db25: Already exists",
        "2b9585699ff1: Verifying Checksum",
        "2b9585699ff1: Download complete",
    ):
        layers.hear(line)
    assert (layers.done, layers.total) == (1, 2)

    layers.hear("2b9585699ff1: Pull complete")
    assert (layers.done, layers.total) == (2, 2)


def test_a_build_has_the_sites_settings_and_its_number_of_compilers() -> None:
    text = build_image.site_settings('HF_ENDPOINT="https://hub.lab"', 3)

    assert text.splitlines()[0] == 'HF_ENDPOINT="https://hub.lab"'
    assert 'BUILD_JOBS="3"' in text
    assert 'MAX_JOBS="3"' in text
    assert 'MAKEFLAGS="-j3"' in text


@pytest.mark.parametrize(
    ("reference", "digest"),
    [
        ("nvcr.io/nvidia/vllm:26.05-py3", "sha256:1"),
        ("nvcr.io/nvidia/vllm@sha256:1", "sha256:1"),
        ("docker.io/lmsysorg/sglang:latest", "sha256:2"),
        ("docker.io/library/python:3.11", "sha256:3"),
        ("registry.lab:5000/python", "sha256:4"),
        ("elsewhere/python", None),
    ],
)
def test_the_digest_of_a_pulled_image_is_that_of_its_own_registry(reference: str, digest: str | None) -> None:
    digests = [
        "nvcr.io/nvidia/vllm@sha256:1",
        "lmsysorg/sglang@sha256:2",
        "python@sha256:3",
        "registry.lab:5000/python@sha256:4",
    ]

    assert pull_image.digest_of(digests, reference) == digest


@pytest.mark.parametrize(
    ("version", "buildx", "refused"), [("20.10.24", 1, False), ("28.5.1", 0, False), ("28.5.1", 1, True)]
)
def test_a_client_that_can_not_build_is_refused_with_the_package_that_it_lacks(
    monkeypatch: pytest.MonkeyPatch, version: str, buildx: int, refused: bool
) -> None:
    class Done:
        returncode = buildx

    monkeypatch.setattr(docker_cli, "capture", lambda *words: Done())
    if refused:
        with pytest.raises(docker_cli.DockerError, match="docker-buildx-plugin"):
            docker_cli.require_builder(version)
    else:
        docker_cli.require_builder(version)
