"""Newer versions of what a lab host has, as an apt repository: for tests of what becomes of a release after an upgrade.

Docker is the real one, of Debian's next release. The driver is simulated, and its package says so: it brings the files
that a device specification names, and `nvidia-smi` refuses to answer between its installation and the next boot, as
with the real one.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from modules.lab.machine import need, run
from modules.lab.pieces.apt import make_repository
from modules.lab.pieces.identity import APT_KEY, APT_SECRET_KEY, identity
from modules.lab.pieces.packages import Control, container_toolkit, pack, toolkit_files
from modules.lab.pieces.piece import Piece
from modules.lab.pieces.rootfs import debian_mirror

DRIVERS = ("580.142", "580.159.03")
DRIVER_PACKAGE = "nvidia-driver-580-open"
NEWER_TOOLKIT = "1.18.1"
# Its docker.io runs on the lab's Debian, too: it needs no newer libc.
_NEXT_SUITE = "trixie"
_DOCKER = ("docker.io", "docker-cli")
_LIBRARIES = "usr/lib/tinderbox-lab"


def upgrades() -> Piece:
    """A flat repository with its `key.asc`."""
    signer = identity()

    def build(folder: Path) -> None:
        need({"dpkg-deb": "dpkg", "apt-get": "apt"})
        architecture = run(["dpkg", "--print-architecture"]).strip()
        shutil.copy(signer.path / APT_KEY, folder / APT_KEY)
        with tempfile.TemporaryDirectory(dir=folder) as work:
            for version in DRIVERS:
                _driver(version, Path(work) / version, folder, architecture)
            container_toolkit(NEWER_TOOLKIT, Path(work), folder, architecture)
            _docker(Path(work), folder)
        make_repository(folder, "upgrades", signer.path / APT_SECRET_KEY)

    return Piece("upgrades", ["1", DRIVERS, NEWER_TOOLKIT, toolkit_files(), _NEXT_SUITE, _DOCKER], build, (signer,))


def _driver(version: str, tree: Path, target: Path, architecture: str) -> None:
    libraries = tree / _LIBRARIES
    libraries.mkdir(parents=True)
    for name in ("libnvidia-ml", "libcuda"):
        (libraries / f"{name}.so.{version}").write_text("simulated\n")
        (libraries / f"{name}.so.1").symlink_to(f"{name}.so.{version}")
    control = Control(
        DRIVER_PACKAGE, f"{version}-1",
        "NVIDIA driver (simulated)\n The lab's stand-in: there is no GPU to drive.", architecture="all",
    )  # fmt: skip
    pack(tree, control, architecture, target)


def _docker(work: Path, target: Path) -> None:
    """Fetch it by this machine's own apt, with lists of their own."""
    apt = work / "apt"
    for folder in ("lists/partial", "cache/archives/partial"):
        (apt / folder).mkdir(parents=True)
    (apt / "sources.list").write_text(f"deb {debian_mirror()} {_NEXT_SUITE} main\n")
    options = {
        "Dir::Etc::sourcelist": apt / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": apt / "lists",
        "Dir::Cache": apt / "cache",
        "Acquire::Languages": "none",
        "APT::Sandbox::User": "root",
    }
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    run(["apt-get", *words, "update"])
    run(["apt-get", *words, "download", *(f"{name}/{_NEXT_SUITE}" for name in _DOCKER)], cwd=target)
