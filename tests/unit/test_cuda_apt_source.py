"""A repository as a source of apt's."""

from __future__ import annotations

import pytest

from modules.catalog import load_catalog
from modules.facts.apt import PackageState
from modules.facts.files import FileState
from modules.operations.apt import install_job, is_wanted
from modules.operations.apt_source import AptSource, has_source, other_source, source_of
from modules.spec.network import AptRepository

REPOSITORY = AptRepository(
    uri="https://apt.lab/cuda/",
    key_url="https://apt.lab/key.asc",
    fingerprint="6FA863ECB61A0B3EDA07C43817AF59CA4C2AE020",
)
SOURCE = AptSource("cuda", REPOSITORY, asked_for=True)
OURS = "/etc/apt/sources.list.d/tinderbox-cuda.sources"


def test_a_flat_repository() -> None:
    assert SOURCE.file.path == OURS
    assert SOURCE.file.content == (
        "# Key: 6FA863ECB61A0B3EDA07C43817AF59CA4C2AE020\n"
        "Types: deb\n"
        "URIs: https://apt.lab/cuda/\n"
        "Suites: /\n"
        "Signed-By: /etc/apt/keyrings/tinderbox-cuda.gpg\n"
    )


def test_a_repository_with_components() -> None:
    source = AptSource("x", REPOSITORY.model_copy(update={"suite": "noble", "components": ("main", "extra")}), True)
    assert "Suites: noble\nComponents: main extra\nSigned-By:" in (source.file.content or "")


@pytest.mark.parametrize(
    ("path", "line", "found"),
    [
        ("/etc/apt/sources.list.d/dgx.sources", "URIs: https://apt.lab/cuda", True),
        ("/etc/apt/sources.list.d/cuda.list", "deb [signed-by=/k.gpg] https://apt.lab/cuda/ /", True),
        ("/etc/apt/sources.list", "# deb https://apt.lab/cuda/ /", False),
        ("/etc/apt/sources.list.d/cuda.list", "deb https://apt.lab/cuda-old/ /", False),
        ("/etc/apt/sources.list.d/cuda.list.save", "deb https://apt.lab/cuda/ /", False),
        (OURS, "URIs: https://apt.lab/cuda/", False),
    ],
)
def test_a_repository_that_the_host_has_already_is_seen(path: str, line: str, found: bool) -> None:
    assert other_source({path: (line,)}, SOURCE) == (path if found else None)


def test_the_source_is_whole_only_with_its_key() -> None:
    import hashlib

    file = FileState(hashlib.sha256((SOURCE.file.content or "").encode()).hexdigest(), "644", "root:root")
    key = FileState("0" * 64, "644", "root:root")
    assert has_source(PackageState(None, {OURS: file, SOURCE.key_path: key}, {}), SOURCE)
    assert not has_source(PackageState(None, {OURS: file, SOURCE.key_path: None}, {}), SOURCE)
    assert not has_source(PackageState(None, {OURS: key, SOURCE.key_path: key}, {}), SOURCE)


@pytest.mark.parametrize("name", ["cuda", "container-toolkit"])
def test_the_catalog_stands_in_for_a_fleet_that_names_none(name: str) -> None:
    assert source_of(name, None) == AptSource(name, load_catalog().repositories[name], asked_for=False)
    assert source_of(name, REPOSITORY) == AptSource(name, REPOSITORY, asked_for=True)


@pytest.mark.parametrize(
    ("version", "wanted", "yes"),
    [
        ("13.0.2-1", "13.0.*", True),
        ("13.0.2-1", "13.0.2-1", True),
        ("13.0.2-1", "13.0.2", False),
        ("13.1.0-1", "13.0.*", False),
        (None, "*", False),
    ],
)
def test_versions(version: str | None, wanted: str, yes: bool) -> None:
    assert is_wanted(version, wanted) is yes


def test_one_job_for_one_wish() -> None:
    assert install_job("docker.io", "*", None) == install_job("docker.io", "*", None)
    assert install_job("docker.io", "*", None).key != install_job("docker.io", "27*", None).key
