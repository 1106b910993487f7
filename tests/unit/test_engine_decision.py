"""What is done about a service."""

from __future__ import annotations

from dataclasses import replace

import pytest

from modules.facts.service import Barred, ServiceState, Underway, UnitState
from modules.release.decision import Action, changes, decide, lacking, turned_away
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


BAD = Barred("gate failed", "2026-11-30T04:45:19Z", "tg32: 2.00 below 5")


@pytest.mark.parametrize(
    ("standing", "pending", "action"),
    [
        ("good", None, Action.NOTHING),
        # Its gate has yet to judge it.
        ("ready", Underway(RELEASE.id, "old"), Action.NOTHING),
        # The program that waited for it was ended before it had noted what came of it.
        ("trying", Underway(RELEASE.id, "old"), Action.ATTACH),
        ("trying", None, Action.ATTACH),
        ("good", Underway(RELEASE.id, "old"), Action.ATTACH),
        ("ready", Underway(RELEASE.id, "old", ungated=True), Action.ATTACH),
        ("good", Underway("other", RELEASE.id), Action.ATTACH),
    ],
)
def test_what_is_active_but_unfinished_is_ended(standing: str, pending: Underway | None, action: Action) -> None:
    state = replace(SERVING, standings={RELEASE.id: standing}, pending=pending)
    assert decide(RELEASE, FILES, state) is action


def test_a_release_that_failed_is_not_tried_again() -> None:
    former = replace(SERVING, current="old", last_good="old", container_release="old", barred={RELEASE.id: BAD})
    assert turned_away(RELEASE, Action.INSTALL, former) == BAD
    assert turned_away(RELEASE, Action.INSTALL, replace(former, barred={"other": BAD})) is None


def test_one_that_is_in_force_all_the_same_is_left_to_its_gate_unless_it_is_to_make_way() -> None:
    state = replace(SERVING, last_good="old", barred={RELEASE.id: BAD})
    assert turned_away(RELEASE, Action.NOTHING, state) is None
    assert turned_away(RELEASE, Action.NOTHING, replace(state, pending=Underway(RELEASE.id, "old"))) == BAD


def test_one_that_an_operator_is_rolling_back_is_not_put_in_force_meanwhile() -> None:
    state = replace(SERVING, pending=Underway("old", RELEASE.id, instead=RELEASE.id))
    found = turned_away(RELEASE, Action.ATTACH, state)
    assert found is not None
    assert "a rollback to old is under way" in found.text()


def test_an_image_that_can_not_be_asked_for_is_not_called_missing() -> None:
    assert lacking(RELEASE, replace(SERVING, image=None, docker_answers=False)) == [
        "a dockerd that answers (stage: runtime)"
    ]


PROVED = {"driver": "580.95.05", "docker": "28.3.3", "CUDA toolkit": "13.0.1-1"}
PROVEN = replace(SERVING, versions=PROVED, proved_on=PROVED, started_on=PROVED)


@pytest.mark.parametrize(
    ("upgraded", "restarted"),
    [
        ({}, False),
        ({"driver": "580.126.09"}, True),
        ({"docker": "29.1.0"}, True),
        ({"CUDA toolkit": "13.0.2-1"}, False),
        ({"CUDA toolkit": "13.0.2-1", "docker": "29.1.0"}, True),
        # dockerd does not answer, or nvidia-smi does not.
        ({"driver": None, "docker": None}, False),
    ],
)
def test_a_server_is_restarted_for_what_it_still_has_of_before(upgraded: dict[str, str], restarted: bool) -> None:
    state = replace(PROVEN, versions={**PROVED, **upgraded})
    assert decide(RELEASE, FILES, state) is (Action.RESTART if restarted else Action.NOTHING)
    # Restarted since, by a boot or by docker's own upgrade: it has taken all up. Without a gate that is its proof.
    since = replace(state, started_on=state.versions)
    assert decide(RELEASE, FILES, since) is Action.NOTHING
    assert decide(RELEASE, FILES, since, gated=False) is (Action.ATTACH if state.upgraded else Action.NOTHING)


def test_a_start_of_which_nothing_was_noted_is_taken_for_that_of_the_proof() -> None:
    state = replace(PROVEN, started_on=None, versions={**PROVED, "driver": "580.126.09"})
    assert decide(RELEASE, FILES, state) is Action.RESTART
    # Of a release from before anything was noted nothing is known.
    assert decide(RELEASE, FILES, replace(state, proved_on=None)) is Action.NOTHING


def test_another_release_is_put_in_force_whatever_was_upgraded() -> None:
    state = replace(PROVEN, current="other", versions={**PROVED, "driver": "580.126.09"})
    assert decide(RELEASE, FILES, state) is Action.INSTALL
