"""Packages of the distribution for a lab host, whose own sources have only what the lab makes."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from modules.lab.pieces.apt import packages_index
from tests.lab.lab_driver import Lab


@contextmanager
def offered(lab: Lab, host: str, package: str, folder: Path) -> Iterator[None]:
    """While this lasts, the host has a source with the package, and with all that it needs there.

    `folder`: of this machine, where they are put together.
    """
    name = f"own-{package}"
    source, there = f"/etc/apt/sources.list.d/{name}.list", f"/opt/{name}"
    (folder / "status").write_text(lab.read(host, "/var/lib/dpkg/status"))
    words = ["apt-get", "-s", "-o", f"Dir::State::status={folder / 'status'}", "--no-install-recommends", "install"]
    planned = subprocess.run([*words, package], capture_output=True, text=True, check=True).stdout
    needed = re.findall(r"^Inst (\S+)", planned, re.MULTILINE)
    if not needed:
        # A lab that was kept has it.
        yield
        return
    subprocess.run(["apt-get", "download", *needed], cwd=folder, check=True, capture_output=True)
    for path in folder.glob("*.deb"):
        path.rename(folder / f"{path.name.split('_')[0]}.deb")
    (folder / "Packages").write_text(packages_index(folder))
    lab.ssh(host, f"sudo mkdir -p {there} && sudo chmod 777 {there}")
    files = [str(path) for path in (*folder.glob("*.deb"), folder / "Packages")]
    copy = ["scp", "-q", "-F", str(lab.layout.ssh_config), *files, f"{host}:{there}/"]
    subprocess.run(copy, check=True, capture_output=True)
    lab.write(host, source, f"deb [trusted=yes] file:{there} ./\n")
    yield
    lab.ssh(host, f"sudo rm -rf {there} {source}")
