"""What the image stage gives a host that lacks an image, and that it gives one that has it nothing."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pyinfra.api import FunctionCommand, StringCommand
from pyinfra.context import ctx_host

from modules.catalog import load_catalog
from modules.facts.image import ImageOnHost, ImageState
from modules.facts.job import JobState, JobStatus
from modules.images import build_of, pinned
from modules.operations import image as operations
from modules.operations.follow import follow
from modules.operations.image import image_present
from modules.spec.image import Recipe
from modules.spec.lock import Lock
from modules.spec.settings import BuildLimits
from tests.operations.stub_host import StubHost, commands_of

BUILT = load_catalog().images["vllm-cpu"]
BUILD = build_of(BUILT)
LIMITS = BuildLimits(keep_gib=12, stop_engines=True)
PULLED = load_catalog().images["vllm-upstream"]
DIGEST = "sha256:" + "a" * 64
OTHER = "sha256:" + "c" * 64
ID = "sha256:" + "b" * 64
BASE = "python:3.11-slim-bookworm"


@pytest.fixture(autouse=True)
def lock(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What the lock holds of images; empty at first."""
    images: dict[str, str] = {}

    class Fleet:
        path = Path("fleet.yaml")

    monkeypatch.setattr(operations, "load_fleet", Fleet)
    monkeypatch.setattr(operations, "read_lock", lambda _: Lock(images=images))
    return images


def given(state: ImageState | None, recipe: Recipe, registry: str | None = None) -> tuple[StubHost, list[Any]]:
    host = StubHost({ImageOnHost: state})
    return host, commands_of(host, image_present, recipe=recipe, registry=registry, limits=LIMITS)


def test_an_image_that_was_built_from_this_recipe_is_no_change() -> None:
    host, commands = given(ImageState(ID, BUILD.digest), BUILT)

    assert commands == []
    assert BUILD.tag in host.noops[0]
    assert host.asked == [(ImageOnHost, {"reference": BUILD.tag})]


@pytest.mark.parametrize(
    "state", [ImageState(None, None), ImageState(ID, None), ImageState(ID, "0" * 12)], ids=["none", "retagged", "other"]
)
def test_any_other_image_of_that_name_is_put_right(state: ImageState, lock: dict[str, str]) -> None:
    lock[BASE] = DIGEST
    _, (request, start, following) = given(state, BUILT, "registry.lab:5000")

    sent = json.loads(request.connector_arguments["_stdin"])
    build = build_of(pinned(BUILT, Lock(images=lock)))
    assert build.tag != BUILD.tag
    assert (sent["tag"], sent["digest"], sent["files"]) == (build.tag, build.digest, build.files)
    assert sent["base"] == f"registry.lab:5000/python@{DIGEST}"
    assert f"start image vllm-cpu-{build.digest}" in start.get_raw_value()
    assert isinstance(following, FunctionCommand)
    assert following.function is follow


def test_a_base_that_is_meant_by_a_tag_is_had_first_and_its_digest_decides_what_is_built(lock: dict[str, str]) -> None:
    host = StubHost({ImageOnHost: ImageState(None, None)})
    with ctx_host.use(host):
        commands = image_present._inner(recipe=BUILT, registry="registry.lab:5000", limits=LIMITS)
        start, following, recording = next(commands), next(commands), next(commands)
        lock[BASE] = DIGEST  # as recording does
        request, build_start, *_ = commands

    assert start.get_raw_value().endswith("pull_image.py registry.lab:5000/python:3.11-slim-bookworm")
    assert following.function is follow
    assert recording.function is operations.record_digest
    assert recording.args[1] == BASE
    assert recording.kwargs == {"own": True}
    sent = json.loads(request.connector_arguments["_stdin"])
    build = build_of(pinned(BUILT, Lock(images=lock)))
    assert (sent["compiler_gib"], sent["keep_gib"], sent["stop_services"]) == (0, 12, True)
    assert sent["build_minutes"] == [2, 6]
    assert (sent["tag"], sent["base"]) == (build.tag, f"registry.lab:5000/python@{DIGEST}")
    assert build.key in build_start.get_raw_value()


def test_an_image_that_was_built_on_a_base_made_by_hand_is_no_change_either() -> None:
    """Such a base has no digest, so the lock never gets one."""
    _, commands = given(ImageState(ID, BUILD.digest), BUILT)

    assert commands == []


@pytest.mark.parametrize(
    ("digest", "own", "held", "succeeds", "told"),
    [
        (DIGEST, True, DIGEST, True, None),
        (OTHER, True, DIGEST, False, "moved from"),
        (None, True, None, True, "stays unpinned"),
        (None, False, None, False, "can not be pinned"),
    ],
)
def test_what_a_tag_stands_for_is_recorded_once(
    monkeypatch: pytest.MonkeyPatch, digest: str | None, own: bool, held: str | None, succeeds: bool, told: str | None
) -> None:
    job = operations.base_job(BASE)
    status = JobStatus(job="base-x", state="succeeded", result={"digest": digest})

    class Host(StubHost):
        def log(self, text: str, log_func: object = None) -> None:
            self.logged.append(text)

    host = Host({JobState: status})
    monkeypatch.setattr(operations, "record", lambda _, images: Lock(images={**images, BASE: held}))

    assert operations.record_digest(None, host, job, BASE, own=own) is succeeds  # type: ignore[arg-type]

    assert [told in line for line in host.logged if told] == ([True] if told else [])


def test_the_request_arrives_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lock: dict[str, str]) -> None:
    lock[BASE] = DIGEST
    monkeypatch.setattr(operations, "IMAGES", str(tmp_path / "it's here"))
    _, (request, *_) = given(ImageState(None, None), BUILT)

    command = request.get_raw_value()
    subprocess.run(["sh", "-c", command], input=request.connector_arguments["_stdin"], text=True, check=True)

    (file,) = (tmp_path / "it's here").rglob("*.json*")
    assert file.name == "request.json"
    assert json.loads(file.read_text())["base"] == f"python@{DIGEST}"


def test_a_pinned_pull_is_by_digest_and_no_change_when_it_is_there(lock: dict[str, str]) -> None:
    assert PULLED.reference is not None
    lock[PULLED.reference] = DIGEST
    pinned = f"nvcr.io/nvidia/vllm@{DIGEST}"

    _, (start, following) = given(ImageState(None, None), PULLED)
    assert start.get_raw_value().endswith(f"pull_image.py {pinned} tinderbox/vllm")
    assert following.function is follow

    host, commands = given(ImageState(ID, None), PULLED)
    assert commands == []
    assert pinned in host.noops[0]


@pytest.mark.parametrize(
    "state", [ImageState(None, None), ImageState(ID, None)], ids=["absent", "some build of the tag"]
)
def test_a_loose_tag_is_pulled_and_what_it_stood_for_goes_into_the_lock(state: ImageState) -> None:
    _, (start, _, recording) = given(state, PULLED)

    assert start.get_raw_value().endswith(f"pull_image.py {PULLED.reference} tinderbox/vllm")
    assert recording.function is operations.record_digest


def test_a_host_without_an_answer_is_refused_alone() -> None:
    _, (refusal,) = given(None, BUILT)

    assert "could not be read" in refusal.get_raw_value()


@pytest.mark.parametrize(
    ("printed", "state"),
    [
        ("absent", ImageState(None, None)),
        (f"{ID} abc123def456", ImageState(ID, "abc123def456")),
        (f"{ID} <no value>", ImageState(ID, None)),
        (f"{ID} ", ImageState(ID, None)),
    ],
)
def test_dockers_answers_are_understood(printed: str, state: ImageState) -> None:
    assert ImageOnHost().process([printed]) == state


def test_a_host_without_docker_has_no_image(tmp_path: Path) -> None:
    command = StringCommand(ImageOnHost().command(reference="x; touch pwned")).get_raw_value()

    done = subprocess.run(
        ["/bin/sh", "-c", command], capture_output=True, text=True, env={"PATH": ""}, cwd=tmp_path, check=True
    )

    assert ImageOnHost().process(done.stdout.splitlines()) == ImageState(None, None)
    assert list(tmp_path.iterdir()) == []
