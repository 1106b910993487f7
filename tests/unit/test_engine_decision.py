"""What is done about a service."""

from __future__ import annotations

from dataclasses import replace

import pytest

from modules.facts.service import ServiceState, UnitState
from modules.operations.engine import fallback_of
from modules.release.decision import Action, changes, decide, lacking
from modules.release.files import release_files
from tests.unit.release_samples import COMMIT, release

RELEASE = release()
FILES = release_files(RELEASE, {})
RUNNING = UnitState(active="active", sub="running", enabled=True, stale=False, job=False)
SERVING = ServiceState(
    systemd=255,
    unit=RUNNING,
    files={file.path: file.sha256 for file in FILES},
    current=RELEASE.id,
    last_good=RELEASE.id,
    image="sha256:1",
    container_release=RELEASE.id,
    commit=COMMIT,
    model_is_here=True,
    missing_encodings=(),
)


def with_unit(**changes: object) -> ServiceState:
    return replace(SERVING, unit=replace(RUNNING, **changes))  # type: ignore[arg-type]


def test_a_server_that_serves_the_release_is_left_alone() -> None:
    assert decide(RELEASE, FILES, SERVING) is Action.NOTHING


@pytest.mark.parametrize(
    ("state", "told"),
    [
        (replace(SERVING, files={}), "differs"),
        (replace(SERVING, current="other"), "current release is other"),
        (replace(SERVING, current=None), "current release is none"),
        (with_unit(enabled=False), "not enabled"),
        (with_unit(stale=True), "not read"),
        # The controller was killed between the new files and the restart.
        (replace(SERVING, container_release="other"), "is of release other"),
    ],
)
def test_any_difference_puts_the_release_in_force(state: ServiceState, told: str) -> None:
    assert decide(RELEASE, FILES, state) is Action.INSTALL
    (change, *_) = changes(RELEASE, FILES, state)
    assert told in change


@pytest.mark.parametrize("active", ["inactive", "failed"])
def test_a_server_that_is_down_is_started(active: str) -> None:
    state = replace(with_unit(active=active, sub="dead"), container_release=None)
    assert decide(RELEASE, FILES, state) is Action.START


@pytest.mark.parametrize(("sub", "job"), [("start-post", False), ("start-pre", True), ("dead", True)])
def test_a_start_under_way_is_waited_for(sub: str, job: bool) -> None:
    state = replace(with_unit(active="activating", sub=sub, job=job), container_release=None)
    assert decide(RELEASE, FILES, state) is Action.ATTACH


def test_the_pause_between_two_attempts_is_not_waited_for() -> None:
    state = replace(with_unit(active="activating", sub="auto-restart"), container_release=None)
    assert decide(RELEASE, FILES, state) is Action.START


def test_what_the_host_lacks_is_named_with_its_stage() -> None:
    assert lacking(RELEASE, SERVING) == []
    bare = replace(SERVING, image=None, model_is_here=False, missing_encodings=("/e/o200k_base.tiktoken",))
    image, weights, encoding = lacking(RELEASE, bare)
    assert "stage: image" in image
    assert "stage: weights" in weights
    assert "o200k_base" in encoding


def test_the_way_back_is_to_the_last_good_release_else_to_the_one_that_serves() -> None:
    assert fallback_of(RELEASE, replace(SERVING, last_good="good", current="newer")) == "good"
    assert fallback_of(RELEASE, replace(SERVING, last_good=None, current="serving")) == "serving"
    down = replace(with_unit(active="failed"), last_good=None, current="broken")
    assert fallback_of(RELEASE, down) is None
    assert fallback_of(RELEASE, SERVING) is None


def test_an_image_that_can_not_be_asked_for_is_not_called_missing() -> None:
    assert lacking(RELEASE, replace(SERVING, image=None, docker_answers=False)) == [
        "a dockerd that answers (stage: runtime)"
    ]
