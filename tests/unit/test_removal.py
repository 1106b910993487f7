"""What goes, what stays and why, when Tinderbox leaves a host; and files that come back as they were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from modules.hostside import removal_system
from modules.hostside.added_packages import asked, separated
from modules.hostside.former_files import formers, have_back
from modules.hostside.removal import ENGINE, IMAGES, LAYERS, SYSTEM, WEIGHTS, Thing, planned, unmerged
from modules.hostside.removal_engine import standing
from modules.operations.docker_config import merged
from modules.reporting.removal import Removal, removal_lines
from modules.spec.settings import Runtime

SERVICE = Thing(ENGINE, "service", "gpt-oss", 10)
IMAGE = Thing(IMAGES, "image", "tinderbox/vllm:0123456789ab", 20, services=("gpt-oss",))
USED = Thing(IMAGES, "image", "tinderbox/vllm:ba9876543210", 30, users=("container mine uses it",))
MODEL = Thing(WEIGHTS, "weights", "owner/name@abc", 40, services=("gpt-oss",))
FOLDER = Thing(SYSTEM, "folder", "/etc/tinderbox")
ALL = [FOLDER, MODEL, USED, IMAGE, SERVICE]


def titles(things: Any) -> list[str]:
    return [one.title for one in things]


def test_all_layers_go_in_order_but_for_what_others_use() -> None:
    plan = planned(ALL, LAYERS, ["gpt-oss"])
    assert titles(plan.going) == [SERVICE.title, IMAGE.title, MODEL.title, FOLDER.title]
    assert [(one.title, one.why) for one in plan.staying] == [(USED.title, "container mine uses it")]
    assert plan.refused is None


@pytest.mark.parametrize(("layer", "thing"), [(IMAGES, IMAGE), (WEIGHTS, MODEL)])
def test_a_service_that_is_not_to_go_keeps_what_it_needs(layer: str, thing: Thing) -> None:
    plan = planned(ALL, [layer], ["gpt-oss"])
    assert thing.title not in titles(plan.going)
    assert any("service gpt-oss needs it" in one.why for one in plan.staying)
    assert titles(planned(ALL, [layer], []).going) == [thing.title]


def test_what_services_stand_on_is_refused_as_long_as_there_is_one() -> None:
    plan = planned(ALL, [SYSTEM], ["gpt-oss"])
    assert plan.going == ()
    assert plan.refused == (
        "layer system is what services stand on, and this host has gpt-oss: ask for layer engine, too"
    )
    assert titles(planned(ALL, [SYSTEM], []).going) == [FOLDER.title]


@pytest.mark.parametrize("kind", ["gateway", "agent", "watcher", "pair", "place taken by service"])
def test_what_else_serves_or_is_to_be_had_back_stands_on_it_too(kind: str, tmp_path: Path) -> None:
    """It would go without having been shown, or with the note by which it is had back."""
    found = [FOLDER, Thing(ENGINE, kind, "x"), Thing(ENGINE, "file", "y"), Thing(SYSTEM, "unit", "z")]
    plan = planned(found, [SYSTEM], standing(found, tmp_path))
    assert plan.going == ()
    assert f"this host has {kind} x: ask for layer engine, too" in (plan.refused or "")
    assert planned(found, [ENGINE, SYSTEM], standing(found, tmp_path)).refused is None
    assert standing(found[2:], tmp_path) == []


def test_only_layers_that_were_asked_for_are_looked_at() -> None:
    assert titles(planned(ALL, [ENGINE], ["gpt-oss"]).going) == [SERVICE.title]


def test_a_plan_is_told_layer_by_layer_with_what_it_frees() -> None:
    found = Removal.of(json.loads(json.dumps(planned(ALL, LAYERS, ["gpt-oss"]).document())))
    lines = list(removal_lines(found))
    assert lines[0] == "layer engine: 1 to go, 10 B"
    assert "    goes   image tinderbox/vllm:0123456789ab (20 B)" in lines
    assert f"    stays  {USED.title}: container mine uses it" in lines
    assert found.bytes == 70


OWNERS: list[dict[str, Any] | None] = [
    None,
    {},
    {"log-driver": "journald", "data-root": "/data"},
    {"log-driver": "json-file", "log-opts": {"max-size": "7m", "compress": "true"}, "debug": True},
    {"log-opts": {"max-file": "2"}},
    {"runtimes": {"nvidia": {"path": "/opt/other"}, "crun": {"path": "crun"}}, "features": {"buildkit": True}},
    {"features": {"containerd-snapshotter": True}, "runtimes": {}},
]


@pytest.mark.parametrize("owners", OWNERS)
def test_what_was_merged_into_dockers_configuration_is_taken_out_again(owners: dict[str, Any] | None) -> None:
    assert unmerged(merged(owners or {}, Runtime()), owners) == (owners or {})


@pytest.mark.parametrize("owners", OWNERS)
def test_what_its_owner_wrote_since_stays(owners: dict[str, Any] | None) -> None:
    since = {"insecure-registries": ["mine:5000"]}
    assert unmerged(merged(owners or {}, Runtime()) | since, owners) == (owners or {}) | since


@pytest.fixture
def host(tmp_path: Path) -> Path:
    (tmp_path / "undo").mkdir()
    return tmp_path


def record(host: Path, path: str, former: str | None, now: str | None) -> Path:
    """A file that was `former` before and is `now`; None: there is none."""
    kept, there = host / "undo" / path, host / "root" / path
    for folder in (kept.parent, there.parent):
        folder.mkdir(parents=True, exist_ok=True)
    if former is None:
        kept.with_name(f"{kept.name}.absent").touch()
    else:
        kept.write_text(former)
        kept.chmod(0o640)
    if now is not None:
        there.write_text(now)
    return there


def settle(host: Path) -> None:
    for one in formers(host / "undo", host / "root"):
        have_back(one)


def test_files_that_were_there_are_there_again_and_others_go(host: Path) -> None:
    changed = record(host, "etc/systemd/system/earlyoom.service.d/tinderbox.conf", "owner's\n", "ours\n")
    new = record(host, "etc/systemd/system/ssh.service.d/tinderbox.conf", None, "ours\n")
    gone = record(host, "etc/profile.d/x.sh", "owner's\n", None)
    settle(host)
    assert changed.read_text() == gone.read_text() == "owner's\n"
    assert changed.stat().st_mode & 0o777 == 0o640
    assert not new.parent.exists()
    assert formers(host / "undo", host / "root") == []


def test_a_folder_with_a_file_of_its_owners_stays(host: Path) -> None:
    new = record(host, "etc/systemd/system/ssh.service.d/tinderbox.conf", None, "ours\n")
    (new.parent / "own.conf").write_text("owner's\n")
    settle(host)
    assert [path.name for path in new.parent.iterdir()] == ["own.conf"]


def test_dockers_configuration_comes_back_byte_for_byte_or_with_what_was_written_since(host: Path) -> None:
    text = '{ "debug" :true,\n "log-opts":{"max-size":"7m"}}'
    ours = merged(json.loads(text), Runtime())
    there = record(host, "etc/docker/daemon.json", text, json.dumps(ours))
    settle(host)
    assert there.read_text() == text
    there = record(host, "etc/docker/daemon.json", text, json.dumps(ours | {"dns": ["10.0.0.1"]}))
    settle(host)
    assert json.loads(there.read_text()) == json.loads(text) | {"dns": ["10.0.0.1"]}


def test_dockers_configuration_that_came_by_us_goes_again(host: Path) -> None:
    there = record(host, "etc/docker/daemon.json", None, json.dumps(merged({}, Runtime())))
    settle(host)
    assert not there.exists()


NEEDS = {"lib": {"tool"}, "tool": set(), "other": {"theirs"}}


def simulate(packages: Any) -> set[str]:
    """apt, where tool needs lib, and somebody's package theirs needs other."""
    return {gone for name in packages for gone in (name, *NEEDS[name])}


def test_packages_go_but_for_those_that_something_else_needs() -> None:
    going, staying = separated({"tool", "lib", "other"}, {"tool", "other"}, {"tool", "other"}, simulate)
    assert going == {"tool", "lib"}
    assert staying == {"other": "theirs needs it"}


def test_a_package_that_somebody_asked_apt_for_since_stays_with_what_it_needs() -> None:
    going, staying = separated({"tool", "lib"}, {"lib"}, {"tool", "lib"}, simulate)
    assert going == set()
    assert staying == {"tool": "somebody has asked apt for it since", "lib": "tool needs it"}


def test_what_a_package_that_others_use_stands_on_stays_with_it() -> None:
    going, staying = separated({"tool", "lib"}, {"tool"}, set(), simulate, {"tool": "container mine is in it"})
    assert going == set()
    assert staying == {"tool": "container mine is in it", "lib": "tool needs it"}


def test_nothing_is_taken_where_apt_can_not_be_understood() -> None:
    going, staying = separated({"a", "b"}, {"a"}, set(), lambda names: {*names, "x"} if len(names) > 1 else set())
    assert going == set()
    assert set(staying) == {"a", "b"}


def test_the_notes_of_packages_are_read(tmp_path: Path) -> None:
    path = tmp_path / "packages.json"
    path.write_text(json.dumps({"x": {"added": ["x", "y"], "before": {"z": "1"}}, "damaged": 3}))
    (one,) = asked(path)
    assert (one.name, one.added, one.before) == ("x", ("x", "y"), (("z", "1"),))
    assert asked(tmp_path / "none") == []


@pytest.mark.parametrize("home", ["huggingface", "models", "hub-of/office"])
def test_a_home_of_weights_in_our_own_folder_is_not_the_systems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    """Layer weights takes what came by Tinderbox from it, and the rest is somebody else's."""
    model = tmp_path / "state" / home / "hub" / "models--someone--else"
    for folder in (model, tmp_path / "state" / "jobs", tmp_path / "state" / "weights"):
        folder.mkdir(parents=True)
    monkeypatch.setattr(removal_system, "PROGRAMS", tmp_path / "programs")
    removal_system.forget(tmp_path / "state", tmp_path / "settings")
    assert model.is_dir()
    assert sorted(path.name for path in (tmp_path / "state").iterdir()) == sorted({"weights", home.partition("/")[0]})
