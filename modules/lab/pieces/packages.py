"""Debian packages for the lab's apt repositories."""

from __future__ import annotations

import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from modules.lab.machine import need, run
from modules.lab.pieces.piece import Piece
from modules.lab.pieces.wheels import download

CUDA, CONTAINER_TOOLKIT = "cuda", "container-toolkit"
_MAINTAINER = "Tinderbox lab <apt@apt.lab>"
_CUDA_HOME = "usr/local/cuda-13.0"
# nvcc 13.0.88 and what it needs to compile. cuobjdump and nvdisasm: not on the index before 13.2; they read older code.
_CUDA_WHEELS = (
    "nvidia-cuda-nvcc==13.0.88", "nvidia-cuda-crt==13.0.88", "nvidia-nvvm==13.0.88", "nvidia-cuda-runtime==13.0.96",
    "nvidia-cuda-cccl==13.0.85", "nvidia-cuda-cuobjdump==13.2.51", "nvidia-cuda-nvdisasm==13.2.51",
)  # fmt: skip
# As NVIDIA's own packages do it: /usr/local/cuda is an alternative.
_CUDA_POSTINST = """#!/bin/sh
set -e
update-alternatives --install /usr/local/cuda cuda /usr/local/cuda-13.0 130
update-alternatives --install /usr/local/cuda-13 cuda-13 /usr/local/cuda-13.0 130
"""
_CUDA_PRERM = """#!/bin/sh
set -e
if [ "$1" = remove ]; then
    update-alternatives --remove cuda /usr/local/cuda-13.0
    update-alternatives --remove cuda-13 /usr/local/cuda-13.0
fi
"""
TOOLKIT_VERSION = "1.18.0"  # as it stands in the stand-in itself
_TOOLKIT_FILES = Path(__file__).parent / "container_toolkit"


@dataclass(frozen=True)
class Control:
    """The fields of a package that decide something."""

    package: str
    version: str
    description: str
    depends: str = ""
    architecture: str | None = None  # None: this machine's

    def render(self, architecture: str) -> str:
        """The text of DEBIAN/control."""
        fields = {
            "Package": self.package,
            "Version": self.version,
            "Architecture": self.architecture or architecture,
            "Maintainer": _MAINTAINER,
            "Depends": self.depends,
            "Section": "devel",
            "Priority": "optional",
            "Description": self.description,
        }
        return "".join(f"{name}: {value}\n" for name, value in fields.items() if value)


def packages() -> Piece:
    """A folder with `cuda/*.deb` and `container-toolkit/*.deb`."""

    def build(folder: Path) -> None:
        need({"dpkg-deb": "dpkg"})
        architecture = run(["dpkg", "--print-architecture"]).strip()
        (folder / CUDA).mkdir()
        (folder / CONTAINER_TOOLKIT).mkdir()
        with tempfile.TemporaryDirectory(dir=folder) as work:
            _cuda(Path(work), folder / CUDA, architecture)
            container_toolkit(TOOLKIT_VERSION, Path(work), folder / CONTAINER_TOOLKIT, architecture)

    return Piece("packages", ["2", _CUDA_WHEELS, _CUDA_POSTINST, _CUDA_PRERM, toolkit_files()], build)


def toolkit_files() -> dict[str, str]:
    """Name → text of the programs that stand in for NVIDIA's container toolkit."""
    return {path.name: path.read_text() for path in sorted(_TOOLKIT_FILES.iterdir())}


def _cuda(work: Path, target: Path, architecture: str) -> None:
    wheels, tree = work / "wheels", work / "cuda-nvcc"
    download(_CUDA_WHEELS, wheels)
    home = tree / _CUDA_HOME
    for wheel in sorted(wheels.glob("*.whl")):
        _unpack(wheel, "nvidia/cu13/", home)
    # Under the names that programs look for on a real installation.
    (home / "lib64").symlink_to("lib")
    for library in (home / "lib").glob("lib*.so.*"):
        short = library.with_name(library.name.split(".so.")[0] + ".so")
        if not short.exists():
            short.symlink_to(library.name)
    control = Control(
        "cuda-nvcc-13-0", "13.0.88-1", "CUDA nvcc\n The lab's: packed from NVIDIA's wheels.",
        depends="g++", architecture=None,
    )  # fmt: skip
    pack(tree, control, architecture, target, {"postinst": _CUDA_POSTINST, "prerm": _CUDA_PRERM})
    for version in ("13.0.1-1", "13.0.2-1"):
        control = Control(
            "cuda-toolkit-13-0", version, "CUDA Toolkit 13.0 meta-package\n The lab's: brings nvcc only.",
            depends="cuda-nvcc-13-0 (>= 13.0.88)",
        )  # fmt: skip
        pack(work / f"cuda-toolkit-{version}", control, architecture, target)


def container_toolkit(version: str, work: Path, target: Path, architecture: str) -> None:
    """The stand-in's package in `target`, at a version."""
    tree = work / "nvidia-container-toolkit"
    for name, text in toolkit_files().items():
        program = tree / "usr" / "bin" / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(text.replace(TOOLKIT_VERSION, version))
        program.chmod(0o755)
    control = Control(
        "nvidia-container-toolkit", f"{version}-1",
        "NVIDIA Container Toolkit (simulated)\n The lab's stand-in: there is no GPU to pass on.",
        depends="python3", architecture="all",
    )  # fmt: skip
    pack(tree, control, architecture, target)


def _unpack(wheel: Path, prefix: str, target: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            if not entry.filename.startswith(prefix) or entry.is_dir() or entry.filename.endswith("__init__.py"):
                continue
            path = target / entry.filename.removeprefix(prefix)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(archive.read(entry))
            # A wheel keeps the mode in the upper half of the attributes; pip itself looks at the executable bits only.
            executable = (entry.external_attr >> 16) & 0o111 or path.parent.name == "bin"
            path.chmod(0o755 if executable else 0o644)


def pack(tree: Path, control: Control, architecture: str, target: Path, scripts: dict[str, str] | None = None) -> None:
    """Make a package of a file tree, with the maintainer's scripts by name."""
    meta = tree / "DEBIAN"
    meta.mkdir(parents=True)
    (meta / "control").write_text(control.render(architecture))
    for name, text in (scripts or {}).items():
        (meta / name).write_text(text)
        (meta / name).chmod(0o755)
    run(["dpkg-deb", "--root-owner-group", "-Zzstd", "-z1", "--build", tree, target])
