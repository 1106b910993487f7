"""What the weights stage gives a host that lacks a model, and that it gives one that has it nothing."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from modules.facts.job import JobState, JobStatus
from modules.facts.tools import ToolsInUse
from modules.facts.weights import WeightsOnHost, WeightsState
from modules.hostside import install_tools
from modules.operations import spread_board
from modules.operations import weights as operations
from modules.operations.follow import follow
from modules.operations.hostside import programs
from modules.operations.tools import lock_identity, tools_installed
from modules.operations.weights import Wanted, Wish, fetch_job, record_commit, weights_fetched, weights_seen
from modules.operations.weights_hashed import weights_hashed
from modules.spec.lock import Lock
from modules.spec.model import Model
from modules.spec.settings import Weights
from tests.operations.stub_host import StubHost, commands_of

COMMIT, OTHER = "c" * 40, "d" * 40
PINNED = Model(repository="owner/big", revision=COMMIT, size_gib=1, served_as="big", source="test")
LOOSE = PINNED.model_copy(update={"revision": "main"})
WEIGHTS = Weights(home="/data/it's", workers=4)
WHOLE = WeightsState(
    commit=COMMIT, stamped=True, filters={"include": (), "exclude": ("original/*", "metal/*")}, files=3, bytes=9
)


LINE = f"sha256:{'0' * 64} 9"
# What the lock holds of files.
FILES: dict[str, dict[str, str]] = {}


class Fleet:
    path = Path("fleet.yaml")

    def secret(self, name: str) -> str:
        return f"value of {name}"


@pytest.fixture(autouse=True)
def lock(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What the lock holds of models; empty at first."""
    models: dict[str, str] = {}

    def record(
        _: Path, *, models: dict[str, str] | None = None, files: dict[str, dict[str, str]] | None = None
    ) -> Lock:
        held.update({**(models or {}), **held})
        listed.update(files or {})
        return Lock(models=held, files=listed)

    held, listed = models, FILES
    listed.clear()
    monkeypatch.setattr(spread_board, "_board", {})
    monkeypatch.setattr(operations, "load_fleet", Fleet)
    monkeypatch.setattr(operations, "read_lock", lambda _: Lock(models=held, files=listed))
    monkeypatch.setattr(operations, "record", record)
    return models


def given(state: WeightsState | None, model: Model = PINNED) -> tuple[StubHost, list[Any]]:
    """All commands of a host that is alone in its run."""
    host = StubHost({WeightsOnHost: state})
    wanted = Wanted(model, WEIGHTS, 2.0)
    return host, [
        command for each in (weights_seen, weights_fetched) for command in commands_of(host, each, wanted=wanted)
    ]


def test_a_model_that_is_verified_and_untouched_is_no_change() -> None:
    host, commands = given(WHOLE)

    assert commands == []
    assert COMMIT in host.noops[0]
    assert host.asked == [(WeightsOnHost, {"repository": "owner/big", "revision": COMMIT, "home": WEIGHTS.home})]


@pytest.mark.parametrize(
    "change",
    [
        {"stamped": False},
        {"problems": ("model-1.safetensors: changed since it was verified",)},
        {"filters": {"include": ("*.gguf",), "exclude": ()}},
        {"commit": OTHER},
    ],
)
def test_anything_else_is_fetched_and_verified_in_a_job(change: dict[str, object]) -> None:
    _, (start, following, recording) = given(WHOLE.model_copy(update=change))

    command = start.get_raw_value()
    assert f"--commit {COMMIT}" in command
    assert f"--home {shlex.quote(WEIGHTS.home)}" in command
    assert "'--exclude=original/*'" in command
    assert f"--reserve-bytes {2 * 1024**3}" in command
    assert "--locked" not in command
    assert following.function is follow
    assert recording.function is record_commit


def test_files_that_the_lock_has_are_handed_over_to_be_held_against_the_hubs() -> None:
    FILES[f"owner/big@{COMMIT}"] = {"model.safetensors": LINE}

    _, (placing, start, _) = given(WeightsState())

    assert json.loads(placing.connector_arguments["_stdin"]) == {"model.safetensors": LINE}
    (path,) = re.findall(r"--locked (\S+)", start.get_raw_value())
    assert placing.get_raw_value().endswith(f"{path} 644")


def test_a_loose_revision_follows_the_lock(lock: dict[str, str]) -> None:
    lock["owner/big@main"] = COMMIT

    host, commands = given(WHOLE, LOOSE)
    assert commands == []
    assert host.asked[0][1]["revision"] == COMMIT

    _, (start, _, _) = given(WHOLE.model_copy(update={"commit": OTHER}), LOOSE)
    assert f"--commit {COMMIT}" in start.get_raw_value()


def test_a_loose_revision_without_a_lock_is_resolved_by_the_host_and_kept() -> None:
    _, (start, _, recording) = given(WeightsState(), LOOSE)

    assert "--revision main" in start.get_raw_value()
    assert "--commit" not in start.get_raw_value()
    assert recording.function is record_commit


def test_a_branch_that_was_taken_out_of_the_lock_is_asked_for_though_the_host_has_what_it_was() -> None:
    _, (start, _, recording) = given(WHOLE, LOOSE)

    assert "--revision main" in start.get_raw_value()
    assert recording.function is record_commit


def test_a_token_goes_by_a_file_that_only_root_reads() -> None:
    _, (placing, start, _, _) = given(WeightsState(), PINNED.model_copy(update={"token": "hub"}))

    assert placing.connector_arguments["_stdin"] == "value of hub\n"
    assert placing.get_raw_value().endswith("/etc/tinderbox/hub-token.hub 600")
    assert "value of hub" not in placing.get_raw_value() + start.get_raw_value()
    assert "--token-file /etc/tinderbox/hub-token.hub" in start.get_raw_value()


def test_a_host_without_an_answer_is_refused_alone() -> None:
    _, (refusal,) = given(None)

    assert "could not be read" in refusal.get_raw_value()


def test_equal_wishes_share_a_job_and_different_ones_do_not() -> None:
    wish = Wish(PINNED, WEIGHTS, COMMIT, 2)
    others = [
        Wish(PINNED, WEIGHTS, OTHER, 2),
        Wish(PINNED, Weights(home="/other"), COMMIT, 2),
        Wish(PINNED.model_copy(update={"include": ("*.json",)}), WEIGHTS, COMMIT, 2),
    ]

    assert fetch_job(wish) == fetch_job(Wish(PINNED, WEIGHTS, COMMIT, 2))
    assert len({fetch_job(each).key for each in [wish, *others]}) == 4


class Host(StubHost):
    def log(self, text: str, log_func: object = None) -> None:
        self.logged.append(text)


def recorded(result: dict[str, object] | None) -> tuple[bool, Host]:
    status = JobStatus(job="weights-x", state="succeeded", result=result)
    host = Host({JobState: status})
    job = fetch_job(Wish(LOOSE, WEIGHTS, None, 2))
    return record_commit(None, host, job, LOOSE), host  # type: ignore[arg-type]


def test_what_a_revision_stood_for_goes_into_the_lock(lock: dict[str, str]) -> None:
    done, _ = recorded({"commit": COMMIT})

    assert done
    assert lock == {"owner/big@main": COMMIT}


def test_a_revision_that_moved_between_two_hosts_fails_the_later_one(lock: dict[str, str]) -> None:
    lock["owner/big@main"] = OTHER

    done, host = recorded({"commit": COMMIT})

    assert not done
    assert f"moved from {OTHER} to {COMMIT}" in host.logged[0]


def test_a_job_that_named_no_commit_fails_the_host() -> None:
    done, host = recorded(None)

    assert not done
    assert "tinderbox-job-weights-" in host.logged[0]


def test_host_and_controller_call_the_tools_environment_the_same() -> None:
    lock = programs()["tools.lock"]

    assert lock_identity(lock) == install_tools.identity(lock.decode())


def test_tools_of_this_lock_are_no_change_and_others_are_replaced() -> None:
    wanted = lock_identity(programs()["tools.lock"])
    host = StubHost({ToolsInUse: wanted})
    assert commands_of(host, tools_installed) == []
    assert host.noops

    start, following = commands_of(StubHost({ToolsInUse: "none"}), tools_installed)
    assert f"start tools {wanted}" in start.get_raw_value()
    assert following.function is follow


def test_hashing_again_is_a_job_whatever_the_stamp_says() -> None:
    host = StubHost({WeightsOnHost: WHOLE})

    start, following = commands_of(host, weights_hashed, wanted=Wanted(PINNED, WEIGHTS, 2.0))

    assert "verify_weights.py --repository owner/big --revision " + COMMIT in start.get_raw_value()
    assert start.get_raw_value().endswith(" --hash")
    assert following.function is follow


def test_what_was_never_verified_is_refused_with_what_to_do() -> None:
    (refusal,) = commands_of(
        StubHost({WeightsOnHost: WeightsState()}), weights_hashed, wanted=Wanted(PINNED, WEIGHTS, 2)
    )

    assert "run deploys/weights.py first" in refusal.get_raw_value()
