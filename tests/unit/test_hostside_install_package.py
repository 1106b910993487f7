"""What apt would do is read before it does it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from modules.hostside import apt_output, install_package
from modules.hostside.apt_output import Transaction
from modules.hostside.install_package import InstallError

SIMULATION = """\
NOTE: This is only a simulation!
Reading package lists...
The following NEW packages will be installed:
  cuda-nvcc-13-0 cuda-toolkit-13-0
Inst cuda-nvcc-13-0 (13.0.88-1 NVIDIA:cuda [arm64])
Inst cuda-toolkit-13-0 [13.0.1-1] (13.0.2-1 NVIDIA:cuda [arm64]) []
Inst libgomp1:arm64 [14.2.0-4] (14.2.0-4ubuntu2 Ubuntu:24.04 [arm64])
Remv containerd.io [1.7.27-1]
Conf cuda-nvcc-13-0 (13.0.88-1 NVIDIA:cuda [arm64])
"""

MADISON = """\
cuda-toolkit-13-0 |   13.0.2-1 | https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2404/sbsa  Packages
cuda-toolkit-13-0 |   13.0.2-1 | http://mirror.site/cuda  Packages
cuda-toolkit-13-0 |   13.0.1-1 | https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2404/sbsa  Packages
cuda-toolkit-13-0 |   13.0.0-1 | http://mirror.site/cuda Sources
"""


def test_a_simulation_is_read() -> None:
    assert apt_output.transaction(SIMULATION) == Transaction(
        added=("cuda-nvcc-13-0",),
        changed=(("cuda-toolkit-13-0", "13.0.1-1"), ("libgomp1", "14.2.0-4")),
        removed=("containerd.io",),
    )


@pytest.mark.parametrize(
    "package",
    [
        *("nvidia-driver-580-open", "nvidia-dkms-580", "nvidia-open", "nvidia-kernel-common-580", "cuda-drivers"),
        *("cuda-drivers-580", "libnvidia-compute-580", "linux-modules-nvidia-580-open-nvidia-64k", "nvidia-utils-580"),
        *("linux-image-6.17.0-1008-nvidia", "linux-headers-6.17.0-1008-nvidia", "xserver-xorg-video-nvidia-580"),
    ],
)
def test_a_driver_is_refused_whether_it_comes_changes_or_goes(package: str) -> None:
    for planned in (
        Transaction(added=(package,)),
        Transaction(changed=((package, "1"),)),
        Transaction(removed=(package,)),
    ):
        with pytest.raises(InstallError, match=package):
            install_package.check("cuda-toolkit-13-0", planned)


@pytest.mark.parametrize(
    "package",
    [
        *(
            "nvidia-container-toolkit",
            "nvidia-container-toolkit-base",
            "libnvidia-container1",
            "libnvidia-container-tools",
        ),
        *(
            "cuda-toolkit-13-0",
            "cuda-nvcc-13-0",
            "cuda-cudart-dev-13-0",
            "nvidia-cuda-dev",
            "linux-libc-dev",
            "docker.io",
        ),
    ],
)
def test_a_toolkit_is_no_driver(package: str) -> None:
    install_package.check(package, Transaction(added=(package,)))


def test_a_removal_is_refused() -> None:
    with pytest.raises(InstallError, match=r"installing docker\.io would remove containerd\.io"):
        install_package.check("docker.io", Transaction(removed=("containerd.io",)))


@pytest.mark.parametrize(
    ("wanted", "version"),
    [("*", "13.0.2-1"), ("13.0.*", "13.0.2-1"), ("13.0.1-1", "13.0.1-1"), ("13.1.*", None), ("13.0", None)],
)
def test_the_newest_wanted_version_is_taken(wanted: str, version: str | None) -> None:
    assert apt_output.versions(MADISON) == ["13.0.2-1", "13.0.1-1"]
    assert apt_output.matching(apt_output.versions(MADISON), wanted) == version


@pytest.mark.parametrize(
    ("line", "done"),
    [
        ("dlstatus:1:42.5000:Retrieving file 3 of 7 (1min remaining)\n", ("downloading packages", 42.5)),
        ("pmstatus:cuda-nvcc-13-0:61.1:Unpacking cuda-nvcc-13-0\n", ("unpacking and configuring", 61.1)),
        ("pmconffile:/etc/x:0:'a' 'b'\n", None),
        ("pmstatus:short\n", None),
    ],
)
def test_apt_tells_how_far_it_is(line: str, done: tuple[str, float] | None) -> None:
    assert apt_output.percentage(line) == done


def test_what_the_host_had_is_kept_once(tmp_path: Path) -> None:
    undo = tmp_path / "undo" / "packages.json"
    install_package.remember(undo, "a", Transaction(added=("a", "b"), changed=(("c", "1"),)))
    install_package.remember(undo, "a", Transaction(changed=(("a", "2"),)))
    install_package.remember(undo, "d", Transaction(added=("d",)))
    assert json.loads(undo.read_text()) == {
        "a": {"added": ["a", "b"], "before": {"c": "1"}},
        "d": {"added": ["d"], "before": {}},
    }


class Apt:
    """Stands for apt: `offers` after each of its updates."""

    def __init__(self, *offers: str) -> None:
        self.offers = list(offers)
        self.updates: list[str | None] = []

    def update(self, source: str | None) -> None:
        self.updates.append(source)
        self.offers.pop(0)

    def output_of(self, command: list[str]) -> str:
        assert command[:2] == ["apt-cache", "madison"]
        return self.offers[0]


@pytest.mark.parametrize(
    ("source", "offers", "updates"),
    [
        ("/x.sources", ["", MADISON], ["/x.sources"]),
        ("/x.sources", ["", "", MADISON], ["/x.sources", None]),
        (None, [MADISON], []),
        (None, ["", MADISON], [None]),
    ],
)
def test_no_more_lists_are_fetched_than_needed(
    monkeypatch: pytest.MonkeyPatch, source: str | None, offers: list[str], updates: list[str | None]
) -> None:
    apt = Apt(*offers)
    monkeypatch.setattr(install_package, "update", apt.update)
    monkeypatch.setattr(install_package, "output_of", apt.output_of)
    assert install_package.candidate("cuda-toolkit-13-0", "13.0.*", source) == "13.0.2-1"
    assert apt.updates == updates


def test_a_version_that_nobody_has_is_told_with_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    apt = Apt(MADISON, MADISON)
    monkeypatch.setattr(install_package, "update", apt.update)
    monkeypatch.setattr(install_package, "output_of", apt.output_of)
    with pytest.raises(InstallError, match=r"no version 13\.1\.\* .*13\.0\.2-1, 13\.0\.1-1.*fleet file"):
        install_package.candidate("cuda-toolkit-13-0", "13.1.*", None)


def test_a_held_lock_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = ["E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)", None]
    waits: list[float] = []

    def output_of(command: list[str]) -> str:
        assert "Dir::Etc::sourcelist=/x.sources" in command
        answer = answers.pop(0)
        if answer is not None:
            raise InstallError(answer)
        return "done"

    monkeypatch.setattr(install_package, "output_of", output_of)
    monkeypatch.setattr("time.sleep", waits.append)
    install_package.update("/x.sources")
    assert not answers
    assert len(waits) == 1


def test_another_error_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def output_of(command: list[str]) -> str:
        raise InstallError("E: The repository is not signed.")

    monkeypatch.setattr(install_package, "output_of", output_of)
    with pytest.raises(InstallError, match="not signed"):
        install_package.update(None)
