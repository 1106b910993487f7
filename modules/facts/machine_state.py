"""What a machine says it is, as preflight and check judge it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from modules.facts.parse.dgx_release import DgxRelease
from modules.facts.parse.meminfo import Meminfo
from modules.facts.parse.nvidia_smi import Gpu
from modules.facts.parse.os_release import OsRelease


@dataclass(frozen=True)
class Disk:
    """The file system of a path, in bytes. `device`: equal for paths that share their space."""

    mount: str
    device: int
    free: int
    total: int


@dataclass(frozen=True)
class GpuProcess:
    """A process with a compute context on the GPU. `container`: the name of the docker container that it runs in."""

    pid: int
    name: str
    memory_mib: int | None
    container: str | None
    unit: str | None = None


@dataclass(frozen=True)
class Stranger:
    """A process that is not Tinderbox's. `pid`: 0: not known. `memory`: in bytes, without the GPU's.

    `container`, `image`, `unit`: what it runs in. `engine`: the words by which it was known as an engine.
    """

    pid: int
    name: str
    memory: int
    container: str | None = None
    image: str | None = None
    unit: str | None = None
    engine: str | None = None


@dataclass(frozen=True)
class StrangeFiles:
    """So many files of a cache in `home` that do not belong to whose home it is."""

    path: str
    home: str
    strange: int


@dataclass(frozen=True)
class StoredImage:
    """An image on the host, in docker's words; `<none>` where it has no tag or digest."""

    repository: str
    tag: str
    digest: str


@dataclass(frozen=True)
class StoredModel:
    """Bytes on the disk: of the wanted snapshot, and of pieces of a cut download, whose space the next one has.

    `checkpoint`: what modules/hostside/checkpoint.py says of the snapshot, where both are there.
    """

    snapshot: int
    pieces: int
    checkpoint: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class MachineState:
    """A machine as it says it is.

    `root`: whether the gatherer ran as root, that is, whether sudo needs no password. `gpu_samples`: GPU 0, one sample
    when idle and several when busy; empty with `gpu_trouble` set when nvidia-smi gave none. `oddities`: what was not
    understood and does not matter for going on. `disks` and `models`: by what was asked for. `mismatch`: why the GPU
    can not be had before a restart of the host. `waiting`: packages that want one; `kernels`: those that are installed.
    `fabric`: whether stage fabric has configured ports here. `running`: names of containers. `holders`: service → who
    else listens at its port. `engines`: those that are not ours; `largest`: who else holds most memory.
    `docker_masked`, `docker_settings`: why dockerd can not start. `docker_group`: None where there is no such group.
    `desktop`: units of one that run. `strange_files`: in Hugging Face caches. `encodings`: file → bytes.
    `build_seconds`: recipe → what a build took here. `ahead`: seconds by which its clock is ahead of the controller's.
    """

    python: str
    root: bool
    user: str
    architecture: str
    kernel: str
    kernel_arguments: tuple[str, ...]
    os: OsRelease
    dgx: DgxRelease | None
    memory: Meminfo
    reboot_required: bool
    gpu_samples: tuple[Gpu, ...]
    gpu_trouble: str | None
    processes: tuple[GpuProcess, ...]
    docker_root: str
    images: tuple[StoredImage, ...]
    disks: dict[str, Disk]
    models: dict[str, StoredModel]
    oddities: tuple[str, ...]
    mismatch: str | None = None
    waiting: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    fabric: bool = False
    running: tuple[str, ...] = ()
    holders: Mapping[str, Stranger] = field(default_factory=dict)
    engines: tuple[Stranger, ...] = ()
    largest: tuple[Stranger, ...] = ()
    docker_installed: bool = True
    docker_masked: bool = False
    docker_settings: str = ""
    docker_answers: bool = True
    docker_group: bool | None = None
    desktop: tuple[str, ...] = ()
    strange_files: tuple[StrangeFiles, ...] = ()
    encodings: Mapping[str, int] = field(default_factory=dict)
    build_seconds: Mapping[str, float] = field(default_factory=dict)
    interrupted_install: bool = False
    swappiness: int | None = None
    ahead: float = 0.0

    @property
    def gpu(self) -> Gpu | None:
        """GPU 0 as it first answered."""
        return self.gpu_samples[0] if self.gpu_samples else None


@dataclass(frozen=True)
class NoPython:
    """A host that can not be asked: it has no Python, or none that runs the gatherer. `said`: what it answered."""

    said: str
