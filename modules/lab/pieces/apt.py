"""Signed flat apt repositories out of a folder of packages."""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from modules.lab.machine import need, run
from modules.lab.pieces.identity import APT_KEY, APT_SECRET_KEY, identity
from modules.lab.pieces.packages import CONTAINER_TOOLKIT, CUDA, packages
from modules.lab.pieces.piece import Piece


def apt() -> Piece:
    """A folder with `key.asc` and a repository in each of `cuda` and `container-toolkit`."""
    signer, contents = identity(), packages()

    def build(folder: Path) -> None:
        shutil.copy(signer.path / APT_KEY, folder / APT_KEY)
        for name in (CUDA, CONTAINER_TOOLKIT):
            repository = folder / name
            repository.mkdir()
            for package in sorted((contents.path / name).glob("*.deb")):
                os.link(package, repository / package.name)
            make_repository(repository, name, signer.path / APT_SECRET_KEY)

    return Piece("apt", ["1"], build, (signer, contents))


def make_repository(folder: Path, name: str, secret_key: Path) -> None:
    """Make a folder of packages a signed repository."""
    index = packages_index(folder)
    (folder / "Packages").write_text(index)
    (folder / "Packages.gz").write_bytes(gzip.compress(index.encode(), mtime=0))
    (folder / "Release").write_text(release(folder, name, datetime.now(UTC)))
    sign(folder, secret_key)


def packages_index(repository: Path) -> str:
    """The text of `Packages`: each package's control fields, its path, size and hash."""
    stanzas = []
    for package in sorted(repository.glob("*.deb")):
        fields = run(["dpkg-deb", "--field", package]).strip()
        with package.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        stanzas.append(f"{fields}\nFilename: ./{package.name}\nSize: {package.stat().st_size}\nSHA256: {sha256}\n")
    return "\n".join(stanzas)


def release(repository: Path, name: str, date: datetime) -> str:
    """The text of `Release`: who this is, and the hash of each index."""
    lines = [
        "Origin: Tinderbox lab",
        f"Label: Tinderbox lab {name}",
        f"Date: {date:%a, %d %b %Y %H:%M:%S} UTC",
        "SHA256:",
    ]
    for index in ("Packages", "Packages.gz"):
        content = (repository / index).read_bytes()
        lines.append(f" {hashlib.sha256(content).hexdigest()} {len(content)} {index}")
    return "\n".join(lines) + "\n"


def sign(repository: Path, secret_key: Path) -> None:
    """Write `InRelease` and `Release.gpg` beside `Release`."""
    need({"gpg": "gnupg"})
    with tempfile.TemporaryDirectory() as home:
        gpg = ["gpg", "--homedir", home, "--batch", "--pinentry-mode", "loopback", "--passphrase", "", "--yes"]
        plain = repository / "Release"
        run([*gpg, "--import", secret_key])
        run([*gpg, "--clearsign", "--output", repository / "InRelease", plain])
        run([*gpg, "--armor", "--detach-sign", "--output", repository / "Release.gpg", plain])
        run(["gpgconf", "--homedir", home, "--kill", "all"])
