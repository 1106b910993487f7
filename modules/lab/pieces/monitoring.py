"""Debian's Prometheus and node exporter with what they need, for lab hosts, and promtool for this machine."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

from modules.lab.machine import need, run
from modules.lab.pieces.apt import packages_index
from modules.lab.pieces.piece import Piece
from modules.lab.pieces.rootfs import ARCHIVE, host_rootfs

PACKAGES = ("prometheus", "prometheus-node-exporter")
PROMTOOL = "promtool"
_STATUS = "./var/lib/dpkg/status"


def monitoring() -> Piece:
    """A folder with `packages/`, a flat repository of what a lab host lacks of them, and `promtool`."""
    rootfs = host_rootfs()

    def build(folder: Path) -> None:
        need({"apt-get": "apt", "dpkg-deb": "dpkg"})
        packages = folder / "packages"
        (packages / "partial").mkdir(parents=True)
        with tarfile.open(rootfs.path / ARCHIVE) as archive:
            member = archive.extractfile(_STATUS)
            assert member is not None
            (folder / "status").write_bytes(member.read())
        options = [f"Dir::State::status={folder / 'status'}", f"Dir::Cache::archives={packages}", "Debug::NoLocking=1"]
        words = [word for option in options for word in ("-o", option)]
        run(["apt-get", *words, "--yes", "--no-install-recommends", "--download-only", "install", *PACKAGES])
        (packages / "partial").rmdir()
        (package,) = packages.glob("prometheus_*.deb")
        run(["dpkg-deb", "--extract", package, folder / "tree"])
        (folder / "tree/usr/bin/promtool").rename(folder / PROMTOOL)
        shutil.rmtree(folder / "tree")
        (packages / "Packages").write_text(packages_index(packages))

    return Piece("monitoring", ["2", PACKAGES], build, (rootfs,))
