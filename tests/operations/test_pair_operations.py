"""What a run gives the hosts that one service spans, and that it gives those that agree nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from pyinfra.api import FunctionCommand
from pyinfra.context import ctx_host

from modules.facts.checkpoint import CheckpointFiles
from modules.facts.obstacles import PortHolder, StrangeEngines
from modules.facts.pair import PairState, ServicePair
from modules.facts.releases import HostReleases
from modules.facts.service import ServiceRelease, ServiceState
from modules.fleet import Fleet, HostPlan
from modules.images.reference import image_reference
from modules.operations import engine, memory, pair, weights
from modules.operations.engine import service_running
from modules.operations.pair import disagreement, members_here, pair_files, pair_linked, part_follows, part_staged
from modules.release import layout
from modules.release.build import build_release
from modules.release.files import release_files
from modules.spec.lock import Lock
from modules.spec.settings import HostSettings
from tests.operations.stub_host import StubHost
from tests.operations.test_engine_operations import COMMIT, LISTED, SERVING, SMALL
from tests.unit.release_samples import service_plan, surroundings

HOSTS = ("spark-1", "spark-2")
ADDRESSES = {"spark-1": "10.1.0.1", "spark-2": "10.1.0.2"}
PLAN = service_plan(gate="lab-cpu", cluster={"hosts": list(HOSTS), "addresses": ADDRESSES})
PLANS = {host: replace(PLAN, host=host, gate=PLAN.gate if host == "spark-1" else None) for host in HOSTS}
IMAGE = image_reference(PLAN.recipe, Lock())
RELEASE = build_release(PLANS["spark-1"], surroundings(image=IMAGE, commit=COMMIT))


def hashes(host: str) -> dict[str, str | None]:
    """Of the files of its part, and of those that link it."""
    linked = {f.path: hashlib.sha256(str(f.content).encode()).hexdigest() for f in pair_files(PLANS[host])}
    return {**linked, **{f.path: f.sha256 for f in release_files(RELEASE, {}, host)}}


def serving(host: str) -> PairState:
    return PairState(
        key="k1", files=hashes(host), agent="active", agent_enabled=True, current=RELEASE.id, last_good=RELEASE.id,
        active="active", enabled=True,
    )  # fmt: skip


def state(host: str) -> ServiceState:
    files = {f.path: f.sha256 for f in release_files(RELEASE, {}, host)}
    return replace(
        SERVING,
        files={**files, layout.services_file(): LISTED},
        current=RELEASE.id,
        last_good=RELEASE.id,
        container_release=RELEASE.id,
        standings={RELEASE.id: "good"},
    )


@dataclass
class Inventory:
    """The hosts of a run, as an operation reaches them."""

    hosts: dict[str, StubHost]

    def get_host(self, name: str) -> StubHost:
        return self.hosts[name]

    def __iter__(self) -> Iterator[StubHost]:
        return iter(self.hosts.values())


@dataclass
class RunState:
    """What pyinfra's state tells here."""

    inventory: Inventory
    limit_hosts: list[StubHost] | None = None
    failed_hosts: set[StubHost] = field(default_factory=set)


@dataclass
class Run:
    """Two hosts in one run. `pairs`, `services`: what each tells of itself."""

    hosts: dict[str, StubHost]
    state: RunState

    @classmethod
    def of(cls, **pairs: PairState | None) -> Run:
        hosts = {}
        for name in HOSTS:
            found = pairs.get(name.replace("-", "_"), serving(name))
            hosts[name] = StubHost({
                ServicePair: found,
                ServiceRelease: state(name),
                CheckpointFiles: SMALL,
                HostReleases: {},
                PortHolder: None,
                StrangeEngines: (),
            })  # fmt: skip
            hosts[name].name = name
        run = cls(hosts, RunState(Inventory(hosts)))
        for host in hosts.values():
            host.state = run.state  # type: ignore[attr-defined]
        return run

    def on(self, name: str, operation: Any, **arguments: Any) -> list[Any]:
        """The operation's commands on one of them."""
        with ctx_host.use(self.hosts[name]):
            return list(operation._inner(plan=PLANS[name], **arguments))


@pytest.fixture(autouse=True)
def fleet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    office = Fleet(name="office", path=tmp_path / "fleet.yaml", hosts={})
    for module in (engine, weights, pair):
        monkeypatch.setattr(module, "load_fleet", lambda: office)
    monkeypatch.setattr(pair, "_keys", {})
    monkeypatch.setattr(memory, "_told", set())


def host_plan(name: str) -> HostPlan:
    return HostPlan(name, HostSettings(), (PLANS[name],))


def text(commands: list[Any]) -> str:
    return "\n".join(str(command) for command in commands)


def test_hosts_that_agree_are_given_nothing() -> None:
    run = Run.of()
    for name in HOSTS:
        assert run.on(name, pair_linked) == []
        assert run.on(name, members_here) == []
    assert run.on("spark-2", part_staged, services=host_plan("spark-2")) == []
    assert run.on("spark-1", service_running, services=host_plan("spark-1")) == []
    assert run.on("spark-2", part_follows, services=host_plan("spark-2")) == []
    assert run.on("spark-2", part_follows) == []


def test_one_key_is_handed_out_and_stands_in_no_command_line() -> None:
    run = Run.of(spark_1=PairState(), spark_2=PairState())
    given = {name: run.on(name, pair_linked) for name in HOSTS}
    keys = set()
    for name, commands in given.items():
        shown = text(commands)
        (placing,) = [one for one in commands if ".pair.key.new" in str(one) and "umask 077" in str(one)]
        key = placing.connector_arguments["_stdin"]
        keys.add(key)
        assert key.strip() not in shown
        assert "pair_unit.py begin gpt-oss" in shown
        placed = [one.connector_arguments.get("_stdin") for one in commands if hasattr(one, "connector_arguments")]
        assert any(content and f'"host": "{name}"' in content for content in placed)
    assert len(keys) == 1


def test_a_member_with_another_key_has_all_get_a_new_one() -> None:
    run = Run.of(spark_2=replace(serving("spark-2"), key="k2"))
    assert all(".pair.key" in text(run.on(name, pair_linked)) for name in HOSTS)


@pytest.mark.parametrize("operation", [pair_linked, members_here])
def test_a_run_with_a_part_of_the_hosts_is_refused(operation: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run.of()
    run.state.limit_hosts = [run.hosts["spark-1"]]
    shown = text(run.on("spark-1", operation))
    assert "service gpt-oss spans spark-1, spark-2, and this run leaves out spark-2" in shown
    assert "exit 1" in shown
    head = text(run.on("spark-1", service_running, services=host_plan("spark-1")))
    assert "leaves out spark-2" in head
    assert "start_service.py" not in head


def test_nothing_is_started_when_a_member_has_failed_in_this_run() -> None:
    run = Run.of(spark_2=PairState())
    run.state.failed_hosts = {run.hosts["spark-2"]}
    shown = text(run.on("spark-1", service_running, services=host_plan("spark-1")))
    assert "spark-2 failed in this run" in shown
    assert "start_service.py" not in shown


def test_a_worker_gets_the_release_and_is_not_started() -> None:
    run = Run.of()
    bare = replace(state("spark-2"), files={layout.services_file(): LISTED}, current=None, last_good=None)
    run.hosts["spark-2"].answers[ServiceRelease] = [bare]
    commands = run.on("spark-2", part_staged, services=host_plan("spark-2"))
    (stage,) = [one for one in commands if "ledger.py stage" in str(one)]
    told = stage.connector_arguments["_stdin"]
    assert f'"id": "{RELEASE.id}"' in told
    assert "--headless" in told
    assert "start_service.py" not in text(commands)


def test_a_worker_that_lacks_something_is_refused_before_anything_is_stopped() -> None:
    run = Run.of()
    lacking = replace(state("spark-2"), current=None, image=None)
    run.hosts["spark-2"].answers[ServiceRelease] = [lacking]
    shown = text(run.on("spark-2", part_staged, services=host_plan("spark-2")))
    assert "spark-2: service gpt-oss can not start, the host lacks image" in shown


@pytest.mark.parametrize(
    "there",
    [
        replace(serving("spark-2"), current="another"),
        replace(serving("spark-2"), active="failed"),
        replace(serving("spark-2"), files={**hashes("spark-2"), layout.environment_file("gpt-oss"): "edited"}),
        None,
    ],
)
def test_a_worker_that_differs_has_the_head_start_all_anew(there: PairState | None) -> None:
    run = Run.of(spark_2=there)
    shown = text(run.on("spark-1", service_running, services=host_plan("spark-1")))
    assert "start_service.py gpt-oss" in shown


@pytest.mark.parametrize(
    ("mine", "head", "release", "words"),
    [
        (serving("spark-2"), serving("spark-1"), RELEASE.id, ""),
        (serving("spark-2"), serving("spark-1"), "wanted", "and wanted is wanted"),
        (replace(serving("spark-2"), current="r0"), serving("spark-1"), None, "release r0 is in force"),
        (replace(serving("spark-2"), last_good="r0"), serving("spark-1"), None, "last good release is r0"),
        (replace(serving("spark-2"), active="failed"), serving("spark-1"), None, "the unit is failed"),
        (replace(serving("spark-2"), enabled=False), serving("spark-1"), None, "a boot does here another thing"),
        (None, serving("spark-1"), None, "the host gives no answer"),
        (serving("spark-2"), None, None, "the head gives no answer"),
    ],
)
def test_what_a_worker_and_its_head_differ_in_is_told(
    mine: PairState | None, head: PairState | None, release: str | None, words: str
) -> None:
    assert words in disagreement(mine, head, release)
    assert bool(disagreement(mine, head, release)) == bool(words)


def test_a_worker_that_is_behind_is_waited_for() -> None:
    run = Run.of(spark_2=replace(serving("spark-2"), active="activating"))
    (command,) = run.on("spark-2", part_follows)
    assert isinstance(command, FunctionCommand)


def test_a_service_that_spans_hosts_no_more_is_linked_no_more() -> None:
    run = Run.of()
    alone = replace(PLANS["spark-1"], service=PLAN.service.model_copy(update={"cluster": None}))
    linked = {**state("spark-1").files, layout.pair_unit_file("gpt-oss"): "there"}
    run.hosts["spark-1"].answers[ServiceRelease] = [replace(state("spark-1"), files=linked)]
    with ctx_host.use(run.hosts["spark-1"]):
        shown = text(list(service_running._inner(plan=alone, services=host_plan("spark-1"))))
    assert "pair_unit.py end gpt-oss" in shown
