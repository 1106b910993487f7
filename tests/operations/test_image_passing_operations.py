"""An image from host to host: what each host of a run is given, and that a fleet that has all is given nothing."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyinfra.api.state import StateStage

from modules.catalog import load_catalog
from modules.facts.image import ImageState
from modules.facts.image_survey import HostImages, ImagesOnHost, ReachedAt
from modules.facts.job import JobState, JobStatus
from modules.images import Build, build_of
from modules.images.passing import Passing
from modules.operations import image_passing, image_survey
from modules.operations.follow import follow
from modules.operations.image_passing import (
    images_offered,
    images_received,
    images_surveyed,
    note_offer,
    offers_ended,
    open_offer,
    push_job,
    usable_address,
)
from modules.operations.image_pruning import images_pruned
from modules.operations.image_survey import Offered, passing_for, run_of, surveyed
from modules.spec.lock import Lock
from tests.operations.stub_host import StubHost, commands_of

RECIPE = load_catalog().images["vllm-cpu"]
BUILD: Build = build_of(RECIPE)
PULLED = load_catalog().images["vllm-upstream"]
ID, DIGEST = "sha256:" + "b" * 64, "sha256:" + "a" * 64
THERE = HostImages({BUILD.tag: ImageState(ID, BUILD.digest)})
LACKING = HostImages({BUILD.tag: ImageState(None, None)})
NAMES = ("spark-1", "spark-2", "spark-3")


@dataclass(eq=False)
class Run:
    """A run of pyinfra, as far as it is looked at."""

    current_stage: StateStage = StateStage.Execute
    hosts: dict[str, Member] = field(default_factory=dict)
    failed_hosts: set[Any] = field(default_factory=set)
    ops: dict[Any, dict[str, Any]] = field(default_factory=dict)

    @property
    def inventory(self) -> Any:
        active = [host for host in self.hosts.values() if host not in self.failed_hosts]
        return SimpleNamespace(get_active_hosts=lambda: active[::-1])


class Member(StubHost):
    """A host of a run."""

    def __init__(self, name: str, state: Run, images: HostImages | None) -> None:
        super().__init__({ImagesOnHost: images, ReachedAt: "10.0.0.11"})
        self.name, self.state = name, state
        state.ops[self] = {}

    def log(self, text: str, log_func: Any = None) -> None:
        self.logged.append(text)


Fleet = Callable[..., Run]


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch) -> Fleet:
    """A run of three hosts that need one image; `has`: what each has; `builders`: whom each names."""

    def of(*has: HostImages | None, builders: tuple[str | None, ...] = (None, None, None), recipe: Any = RECIPE) -> Run:
        hosts = {
            name: SimpleNamespace(settings=SimpleNamespace(image=SimpleNamespace(builder=builder)))
            for name, builder in zip(NAMES, builders, strict=True)
        }
        loaded = SimpleNamespace(path=Path("fleet.yaml"), hosts=hosts)
        for module in (image_survey, image_passing):
            monkeypatch.setattr(module, "load_fleet", lambda: loaded)
            monkeypatch.setattr(module, "read_lock", lambda _: Lock())
        monkeypatch.setattr(image_survey, "recipes_of", lambda _: [recipe])
        run = Run()
        for name, images in zip(NAMES, has, strict=True):
            run.hosts[name] = Member(name, run, images)
        return run

    return of


def given(run: Run, name: str, operation: Any, **arguments: Any) -> list[Any]:
    return commands_of(run.hosts[name], operation, **arguments)


def offer_of(run: Run, name: str) -> list[Any]:
    return given(run, name, images_offered, recipes=[RECIPE], port=5599, peer_address=None)


def test_a_fleet_that_has_the_image_is_asked_once_a_host_and_given_nothing(fleet: Fleet) -> None:
    run = fleet(THERE, THERE, THERE)
    for name in NAMES:
        assert given(run, name, images_surveyed) == []
    for name in NAMES:
        assert offer_of(run, name) == []
        assert given(run, name, images_received, recipes=[RECIPE]) == []
        assert given(run, name, offers_ended) == []
        assert given(run, name, images_pruned, recipes=[RECIPE], wanted=True) == []
    assert [len(host.asked) for host in run.hosts.values()] == [1, 1, 1]


def test_the_first_host_of_the_fleet_file_makes_it_and_offers_it_to_the_others(fleet: Fleet) -> None:
    run = fleet(LACKING, LACKING, LACKING)

    opening, start, following, noting = offer_of(run, "spark-1")

    assert opening.function is open_offer
    assert f"push_image.py {BUILD.tag} 5599" in start.get_raw_value()
    assert following.function is follow
    assert noting.function is note_offer
    assert offer_of(run, "spark-2") == []


def test_no_one_but_a_reachable_host_of_the_run_is_the_builder(fleet: Fleet) -> None:
    run = fleet(LACKING, LACKING, LACKING, builders=("spark-1",) * 3)
    run.failed_hosts.add(run.hosts["spark-1"])

    assert passing_for(run.hosts["spark-3"], RECIPE) == Passing("spark-2", ("spark-3",))  # type: ignore[arg-type]


def test_a_builder_that_fails_later_makes_no_other_host_build(fleet: Fleet) -> None:
    run = fleet(LACKING, LACKING, LACKING)
    offer_of(run, "spark-1")
    run.failed_hosts.add(run.hosts["spark-1"])

    (refusal,) = given(run, "spark-2", images_received, recipes=[RECIPE])

    told = subprocess.run(["sh", "-c", refusal.get_raw_value()], capture_output=True, text=True, check=False)
    assert told.returncode == 1
    assert "was to come from spark-1, which failed" in told.stderr
    assert len(told.stderr.splitlines()) == 1


def test_what_was_found_when_a_run_was_prepared_does_not_count_when_it_is_executed(fleet: Fleet) -> None:
    run = fleet(LACKING, LACKING, LACKING)
    run.current_stage = StateStage.Prepare
    assert given(run, "spark-2", images_received, recipes=[RECIPE]) != []
    run.current_stage = StateStage.Execute
    for host in run.hosts.values():
        host.answers[ImagesOnHost] = [THERE]

    assert given(run, "spark-2", images_received, recipes=[RECIPE]) == []


def test_a_receiver_gets_its_key_in_a_file_of_roots_and_never_in_a_command(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = fleet(THERE, LACKING, THERE)
    known = run_of(run)  # type: ignore[arg-type]
    known.offers["spark-1", BUILD.tag] = Offered(BUILD.tag, DIGEST, ID)
    known.access["spark-1"] = {"address": "10.0.0.11", "port": 5599, "keys": "PRIVATE"}
    monkeypatch.setattr(image_passing, "KEYS", str(tmp_path / "keys"))

    placing, start, following = given(run, "spark-2", images_received, recipes=[RECIPE])

    assert following.function is follow
    assert f"10.0.0.11 5599 {BUILD.tag} {DIGEST} {ID}" in start.get_raw_value()
    assert "PRIVATE" not in placing.get_raw_value() + start.get_raw_value()
    sent = placing.connector_arguments["_stdin"]
    subprocess.run(["sh", "-c", placing.get_raw_value()], input=sent, text=True, check=True)
    (key,) = (tmp_path / "keys").iterdir()
    assert (key.read_text(), key.stat().st_mode & 0o777) == ("PRIVATE", 0o600)
    assert key.parent.stat().st_mode & 0o777 == 0o700
    assert str(key) in start.get_raw_value()


def test_the_offer_is_opened_at_the_address_where_the_host_was_reached(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = fleet(THERE, LACKING, LACKING)
    host = run.hosts["spark-1"]
    sent: list[tuple[str, str]] = []

    def ask(_host: Any, command: Any, _pause: Any, stdin: str) -> tuple[bool, Any]:
        sent.append((command.get_raw_value(), stdin))
        return True, SimpleNamespace(stdout_lines=[json.dumps({"address": "10.0.0.11", "port": 5599, "keys": "K"})])

    monkeypatch.setattr(image_passing, "ask", ask)
    assert open_offer(run, host, 5599, None)  # type: ignore[arg-type]
    assert open_offer(run, host, 5599, "192.168.9.1")  # type: ignore[arg-type]

    first, second = (json.loads(stdin) for _, stdin in sent)
    assert [offer["address"] for offer in (first, second)] == ["10.0.0.11", "192.168.9.1"]
    assert "PRIVATE KEY" in first["server"]
    assert "PRIVATE KEY" in first["client"]
    assert "PRIVATE KEY" not in first["authority"]
    assert all(command.endswith("offer_images.py begin") for command, _ in sent)
    assert run_of(run).access["spark-1"]["keys"] == "K"  # type: ignore[arg-type]
    # By now something listens there.
    assert given(run, "spark-1", offers_ended)[0].get_raw_value().endswith("offer_images.py end")


@pytest.mark.parametrize("address", [None, "127.0.0.1", "::1"])
def test_a_host_that_others_can_not_reach_says_what_to_set(fleet: Fleet, address: str | None) -> None:
    run = fleet(THERE, LACKING, LACKING)
    host = run.hosts["spark-1"]
    host.answers[ReachedAt] = [address]

    assert not usable_address(address)
    assert not open_offer(run, host, 5599, None)  # type: ignore[arg-type]
    assert "Set network.peer_address" in host.logged[-1]


def test_what_the_job_found_is_what_the_others_pull(fleet: Fleet) -> None:
    run = fleet(THERE, LACKING, LACKING)
    host = run.hosts["spark-1"]
    job = push_job(BUILD.tag, 5599)
    for result, good in (({"digest": DIGEST, "id": ID}, True), ({"digest": None}, False), (None, False)):
        host.answers[JobState] = [JobStatus(job="offer-x", state="succeeded", result=result)]
        assert note_offer(run, host, job, BUILD.tag, "key") is good  # type: ignore[arg-type]
    assert run_of(run).offers == {("spark-1", "key"): Offered(BUILD.tag, DIGEST, ID)}  # type: ignore[arg-type]


def test_a_dry_run_shows_that_an_image_will_come(fleet: Fleet) -> None:
    run = fleet(THERE, LACKING, THERE)
    run.current_stage = StateStage.Prepare

    assert len(given(run, "spark-2", images_received, recipes=[RECIPE])) == 1
    assert given(run, "spark-3", images_received, recipes=[RECIPE]) == []


def test_remains_of_a_cut_run_are_taken_away(fleet: Fleet) -> None:
    run = fleet(HostImages(THERE.images, leftover=True), THERE, THERE)

    assert len(given(run, "spark-1", offers_ended)) == 1
    assert given(run, "spark-2", offers_ended) == []


def test_a_host_that_does_not_answer_is_refused_alone(fleet: Fleet) -> None:
    run = fleet(None, LACKING, LACKING)

    (refusal,) = given(run, "spark-1", images_surveyed)

    assert "could not be read" in refusal.get_raw_value()
    assert passing_for(run.hosts["spark-2"], RECIPE) == Passing("spark-2", ("spark-3",))  # type: ignore[arg-type]


def test_an_image_whose_tag_is_not_resolved_is_nowhere_yet(fleet: Fleet) -> None:
    run = fleet(HostImages({}), HostImages({}), HostImages({}), recipe=PULLED)

    assert passing_for(run.hosts["spark-2"], PULLED) == Passing("spark-1", ("spark-2", "spark-3"))  # type: ignore[arg-type]
    assert run.hosts["spark-1"].asked == [(ImagesOnHost, {"references": []})]


OLD = "tinderbox/vllm-cpu:000000000000"


def test_what_nothing_needs_is_removed_and_told_unless_the_fleet_file_forbids_it(fleet: Fleet) -> None:
    run = fleet(HostImages(THERE.images, removable=(OLD,), stale_bytes=3 << 20), THERE, THERE)
    run.current_stage = StateStage.Prepare

    (prune,) = given(run, "spark-1", images_pruned, recipes=[RECIPE], wanted=True)

    assert prune.get_raw_value().endswith(f"prune_images.py {BUILD.tag}")
    assert run.hosts["spark-1"].logged == [f"not needed any more: {OLD}, 3.0 MiB of layers for passing images on"]
    assert given(run, "spark-1", images_pruned, recipes=[RECIPE], wanted=False) == []


def test_caches_that_no_release_is_proved_on_go_with_them(fleet: Fleet) -> None:
    old = "gpt-oss/keyed/vllm-cpu-12.1-580.142-0a1b2c3d"
    run = fleet(HostImages(THERE.images, caches=(old,)), THERE, THERE)
    run.current_stage = StateStage.Prepare

    (prune,) = given(run, "spark-1", images_pruned, recipes=[RECIPE], wanted=True)

    assert "prune_images.py" in prune.get_raw_value()
    assert run.hosts["spark-1"].logged == [f"not needed any more: caches {old}"]


def test_images_are_looked_at_anew_after_a_run_has_changed_something(fleet: Fleet) -> None:
    run = fleet(THERE, THERE, THERE)
    host = run.hosts["spark-1"]
    surveyed(host)  # type: ignore[arg-type]
    done = SimpleNamespace(is_complete=lambda: True, did_change=lambda: True)
    run.ops[host] = {"hash": SimpleNamespace(operation_meta=done)}
    host.answers[ImagesOnHost] = [HostImages(THERE.images, removable=(OLD,))]

    assert len(given(run, "spark-1", images_pruned, recipes=[RECIPE], wanted=True)) == 1


def test_the_programs_answer_is_understood() -> None:
    told = {
        "images": {BUILD.tag: {"id": ID, "recipe": BUILD.digest}, "other:tag": None},
        "removable": [OLD],
        "registry": 5,
        "offer": True,
    }
    found = ImagesOnHost().process([json.dumps(told)])
    assert found == HostImages(
        {BUILD.tag: ImageState(ID, BUILD.digest), "other:tag": ImageState(None, None)}, (OLD,), 5, True
    )
    assert ImagesOnHost().process(["absent"]) == HostImages({})
    assert ReachedAt().process(["10.0.0.1 50000 10.0.0.11 22"]) == "10.0.0.11"
