"""Wheels from the Python package index, by this machine's own pip and its configuration."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from packaging.requirements import Requirement

from modules.catalog import load_catalog
from modules.lab.errors import LabError
from modules.lab.machine import has, need, run
from modules.lab.pieces.piece import Piece

# The Python of Debian bookworm, which is the one on lab hosts and in their images; the controller's may be another.
PYTHON_VERSION = "3.11"
_HOST: dict[str, str] = {
    "python_version": PYTHON_VERSION,
    "python_full_version": f"{PYTHON_VERSION}.2",
    "sys_platform": "linux",
}
_ROOT = Path(__file__).parents[3]
_RECIPE = "vllm-cpu"
_ENGINE_LOCKS = tuple(
    _ROOT / "roles" / "image" / "files" / _RECIPE / f"{part}.lock" for part in ("installer", "requirements")
)
_TOOLS_LOCK = _ROOT / "modules" / "hostside" / "tools.lock"
_TORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"
_DOWNLOADS = 2


def wheelhouse() -> Piece:
    """All wheels that the engine's image and the hosts' tools ask for, as a PEP 503 index."""
    # Each is a part of its own, so that a change of one does not fetch the other again.
    parts = [_downloaded("engine", engine_pins()), _downloaded("tools", read_pins(_TOOLS_LOCK.read_text()))]

    def build(folder: Path) -> None:
        for part in parts:
            for wheel in part.path.glob("*.whl"):
                if not (folder / wheel.name).exists():
                    os.link(wheel, folder / wheel.name)
        (folder / "index.json").write_text(json.dumps(index(folder), indent=1, sort_keys=True))

    return Piece("wheels", ["2"], build, tuple(parts))


def engine_pins() -> list[str]:
    """What the recipe of the lab's engine installs: its locks, and the packages that it names itself."""
    locked = [pin for path in _ENGINE_LOCKS for pin in read_pins(path.read_text())]
    named = load_catalog().images[_RECIPE].packages
    return sorted({*locked, *(f"{name}=={version}" for name, version in named.items())})


def _downloaded(name: str, pins: list[str]) -> Piece:
    def build(folder: Path) -> None:
        torch = [pin for pin in pins if pin.startswith("torch==")]
        others = [pin for pin in pins if pin not in torch]
        shares = min(_DOWNLOADS, len(others))
        with ThreadPoolExecutor(_DOWNLOADS + 1) as pool:
            jobs = [pool.submit(download, others[share::shares], folder) for share in range(shares)]
            jobs.append(pool.submit(_download_torch, torch, folder))
            for job in jobs:
                job.result()

    return Piece(f"wheels-{name}", ["1", PYTHON_VERSION, pins], build)


def read_pins(text: str) -> list[str]:
    """The `name==version` of every line of a requirements file whose marker holds on a lab host, without hashes."""
    logical = re.sub(r"\\\n", " ", text)
    lines = (re.split(r"\s--hash|\s#|^#", line)[0].strip() for line in logical.splitlines())
    requirements = [Requirement(line) for line in lines if line and not line.startswith("-")]
    return sorted(
        f"{each.name}{each.specifier}" for each in requirements if each.marker is None or each.marker.evaluate(_HOST)
    )


def download(pins: Sequence[str], folder: Path, more: Sequence[str] = ()) -> None:
    """Download exactly these wheels, no dependencies, for the lab's Python on this machine's architecture."""
    if pins:
        only = ["--no-deps", "--only-binary=:all:", "--python-version", PYTHON_VERSION]
        run([*_pip(), "download", "--quiet", *only, "--dest", folder, *more, *pins])


def index(folder: Path) -> dict[str, dict[str, str]]:
    """Normalized project name → wheel → sha256, for all wheels of a folder."""
    projects: dict[str, dict[str, str]] = {}
    for wheel in sorted(folder.glob("*.whl")):
        project = re.sub(r"[-_.]+", "-", wheel.name.split("-")[0]).lower()
        with wheel.open("rb") as file:
            projects.setdefault(project, {})[wheel.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return projects


def _download_torch(pins: Sequence[str], folder: Path) -> None:
    # On x86-64 the index's own torch is the CUDA build, gigabytes with its libraries. A CPU build has a local version,
    # which this machine's pip may know (find-links, a mirror); otherwise PyTorch's index does.
    local = [f"{pin}+cpu" for pin in pins]
    try:
        download(local, folder)
    except LabError as without:
        try:
            download(local, folder, ["--extra-index-url", _TORCH_CPU_INDEX])
        except LabError as error:
            raise LabError(
                f"no CPU build of {', '.join(pins)} is to be had, neither from pip's configured sources "
                f"nor from {_TORCH_CPU_INDEX}: put the wheel in a folder and set PIP_FIND_LINKS to it\n{without}"
            ) from error


@cache
def _pip() -> tuple[str, ...]:
    candidates = ([sys.executable, "-m", "pip"], ["python3", "-m", "pip"], ["/usr/bin/python3", "-m", "pip"])
    for candidate in candidates:
        if _runs(candidate):
            return tuple(candidate)
    need({"pip3": "python3-pip"})
    return ("/usr/bin/python3", "-m", "pip") if has("pip3") else ("pip",)


def _runs(command: Sequence[str]) -> bool:
    try:
        run([*command, "--version"])
    except LabError:
        return False
    return True
