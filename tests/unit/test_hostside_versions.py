"""What a host tells of its parts, with the programs that it asks made up."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from modules.hostside import versions as program
from modules.hostside.driver_versions import library_in, mismatch, module_in
from modules.hostside.versions import dgx_os_in, library_under, packages_in, versions

OPEN_MODULE = "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  580.95.05  Release Build  (dvs-builder@U22)\n"
CLOSED_MODULE = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.126.09  Wed Jan  7 22:59:56 UTC 2026\n"
REFUSED = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.126\n"
SAMPLES = Path("tests/samples")
DPKG = """ii |nvidia-container-toolkit|1.18.0-1
rc |cuda-toolkit-12-9|12.9.1-1
ii |cuda-toolkit-13-0|13.0.2-1
ii |cuda-toolkit-13-0-config-common|13.0.96-1
un |cuda-toolkit-12-8|
"""


@pytest.mark.parametrize(
    ("text", "version"), [(OPEN_MODULE, "580.95.05"), (CLOSED_MODULE, "580.126.09"), ("", None), ("NVRM", None)]
)
def test_the_loaded_module(text: str, version: str | None) -> None:
    assert module_in(text) == version


def test_the_libraries_by_where_the_loaders_link_leads(tmp_path: Path) -> None:
    folder = tmp_path / "aarch64-linux-gnu"
    folder.mkdir()
    assert library_under(tmp_path) is None
    (folder / "libnvidia-ml.so.580.126.09").touch()
    (folder / "libnvidia-ml.so.1").symlink_to("libnvidia-ml.so.580.126.09")
    assert library_under(tmp_path) == "580.126.09"
    assert library_in("libnvidia-ml.so.1") is None


@pytest.mark.parametrize(
    ("module", "library", "said", "told"),
    [
        ("580.95.05", "580.95.05", "", None),
        ("580.95.05", "580.126.09", "", "the loaded driver is 580.95.05, and its libraries are 580.126.09"),
        (None, None, REFUSED, "the loaded driver has another version than its libraries (580.126)"),
        ("580.95.05", None, REFUSED, "the loaded driver has another version than its libraries (580.126)"),
        # A GPU that is broken is no reason to restart for.
        (None, None, "No devices were found\n", None),
        (None, "580.126.09", "", None),
        (None, None, "", None),
    ],
)
def test_a_restart_is_due_where_module_and_libraries_differ(
    module: str | None, library: str | None, said: str, told: str | None
) -> None:
    assert mismatch(module, library, said) == told


def test_packages() -> None:
    assert packages_in(DPKG) == {"container toolkit": "1.18.0-1", "CUDA toolkit": "13.0.2-1"}
    assert packages_in("") == {"container toolkit": "none", "CUDA toolkit": "none"}
    two = packages_in("ii |cuda-toolkit-13-0|13.0.2-1\nii |cuda-toolkit-13-1|13.1.0-1\n")
    assert two["CUDA toolkit"] == "13.0.2-1, 13.1.0-1"


def test_dgx_os_is_the_last_update() -> None:
    assert dgx_os_in((SAMPLES / "dgx-release").read_text()) == "7.5.0"
    assert dgx_os_in('DGX_NAME="DGX Spark"\nDGX_SWBUILD_VERSION="7.2.3"\n') == "7.2.3"
    assert dgx_os_in("DGX_NAME=x\n") is None


PROGRAMS = {
    "nvidia-smi": "echo 'NVIDIA GB10 (simulated), 580.142, 12.1'",
    "docker": "echo 28.3.3",
    "dpkg-query": "printf 'ii |nvidia-container-toolkit|1.18.0-1\\n'; exit 1",
}


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with all the programs that there are; no file of this machine tells anything."""
    for name, does in PROGRAMS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(program, "_text", lambda _: None)
    monkeypatch.setattr(program, "library_under", lambda _: None)
    return tmp_path


@pytest.mark.usefixtures("programs")
def test_all_parts_of_a_host() -> None:
    found, reboot = versions("sha256:1")
    assert found == {
        "GPU": "NVIDIA GB10 (simulated)", "compute capability": "12.1", "driver": "580.142", "driver library": None,
        "kernel": os.uname().release, "docker": "28.3.3", "container toolkit": "1.18.0-1", "CUDA toolkit": "none",
        "DGX OS": "none", "image": "sha256:1",
    }  # fmt: skip
    assert reboot is None


def test_a_driver_that_was_upgraded_under_its_module(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (programs / "nvidia-smi").write_text(f"#!/bin/sh\nprintf '{REFUSED}'\nexit 18\n")
    monkeypatch.setattr(program, "_text", lambda path: OPEN_MODULE if "nvidia" in path else None)
    found, reboot = versions()
    # Nothing is made up of what can not be asked.
    assert (found["GPU"], found["driver"], found["image"]) == (None, "580.95.05", None)
    assert reboot == "the loaded driver has another version than its libraries (580.126)"


def test_a_host_without_any_of_these_programs(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(programs / "nowhere"))
    found, reboot = versions()
    assert {part: version for part, version in found.items() if version is not None} == {
        "kernel": os.uname().release, "DGX OS": "none",
    }  # fmt: skip
    assert reboot is None
