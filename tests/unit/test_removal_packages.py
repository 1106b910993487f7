"""Packages in the plan of a removal, where others have something in docker that came by Tinderbox."""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Iterable
from pathlib import Path
from types import SimpleNamespace

import pytest

from modules.hostside import added_packages as packages
from modules.hostside import removal_system, remove_layers
from modules.hostside.docker_store import Container, Image, Store
from modules.hostside.former_files import formers
from modules.hostside.removal import SYSTEM, planned

ADDED = ("containerd", "docker.io", "runc")
# Package → those that need it.
NEEDED_BY: dict[str, set[str]] = {"runc": {"containerd", "docker.io"}, "containerd": {"docker.io"}, "docker.io": set()}


@pytest.fixture(autouse=True)
def host(monkeypatch: pytest.MonkeyPatch) -> None:
    def simulated(names: Collection[str]) -> set[str]:
        return {gone for name in names for gone in (name, *NEEDED_BY[name])}

    def present(names: Iterable[str]) -> set[str]:
        return set(names)

    told = SimpleNamespace(
        DOCKER=packages.DOCKER,
        separated=packages.separated,
        asked=lambda: [packages.Asked("docker.io", ADDED, ())],
        present=present,
        manual=lambda: {"docker.io"},
        simulated=simulated,
        run=lambda *_: (0, "1"),
        purge=lambda *_: None,
    )
    monkeypatch.setattr(removal_system, "packages", told)


def going(store: Store) -> list[str]:
    return [one.name for one in planned(removal_system._packages(store), [SYSTEM], []).going]


OTHERS = [
    Store(containers=(Container("c", "mine", "sha256:1", running=True),)),
    Store(images=(Image("sha256:1", ("mine:1",), 1),)),
    Store(volumes=("mine",)),
]


@pytest.mark.parametrize("store", OTHERS)
def test_docker_that_others_use_stays_with_all_that_it_stands_on(store: Store) -> None:
    assert going(store) == []


def test_docker_that_nobody_uses_goes_with_all_that_came_with_it() -> None:
    assert going(Store()) == going(Store(volumes=("tinderbox-grafana",))) == [*ADDED]


def test_files_of_dockers_owner_outlast_it_and_what_it_kept_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: None)
    certificate = tmp_path / "etc/docker/certs.d/registry.office/ca.crt"
    for path in (certificate, tmp_path / "var/lib/docker/x", tmp_path / "var/lib/containerd/x"):
        path.parent.mkdir(parents=True)
        path.touch()

    things = [one for one in removal_system._packages(Store()) if one.name != "containerd"]
    removal_system.purge(things, tmp_path)
    assert certificate.is_file()
    assert not (tmp_path / "var/lib/docker").exists()
    # Its package stays, for somebody else.
    assert (tmp_path / "var/lib/containerd/x").is_file()

    certificate.unlink()
    for folder in certificate.relative_to(tmp_path).parents[:2]:
        (tmp_path / folder).rmdir()
    (tmp_path / "etc/docker/key.json").touch()
    removal_system.purge(list(removal_system._packages(Store())), tmp_path)
    assert not (tmp_path / "etc/docker").exists()
    assert not (tmp_path / "var/lib/containerd").exists()


def test_packages_that_apt_did_not_remove_are_not_told_removed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = list(removal_system._packages(Store()))
    monkeypatch.setattr(remove_layers, "removal_system", SimpleNamespace(PACKAGE=removal_system.PACKAGE, purge=locked))
    remover = remove_layers.Remover([SYSTEM], "me")
    remover._packages(gone)
    assert remover.failed == ["packages: apt is locked"]
    assert capsys.readouterr().out == ""


def locked(_: object) -> None:
    raise OSError("apt is locked")


def test_a_daemon_json_that_its_owner_has_taken_away_since_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "undo/etc/docker/daemon.json"
    kept.parent.mkdir(parents=True)
    kept.write_text("{}")
    daemon = tmp_path / "root/etc/docker/daemon.json"
    monkeypatch.setattr(removal_system, "DAEMON", daemon)
    monkeypatch.setattr(removal_system, "formers", lambda: formers(tmp_path / "undo", tmp_path / "root"))
    (thing,) = [one for one in removal_system._files(Store()) if one.name == str(daemon)]
    assert (thing.users, thing.note) == ((), "had back as it was")
