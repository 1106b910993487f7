"""What a machine is, before anything of ours is on it: preflight's one round trip."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pyinfra.api import QuoteString, StringCommand
from typing_extensions import override

from modules.facts.base import HostFact
from modules.facts.parse.dgx_release import DgxRelease, parse_dgx_release
from modules.facts.parse.errors import ParseError
from modules.facts.parse.meminfo import Meminfo, parse_meminfo
from modules.facts.parse.nvidia_smi import Gpu, parse_compute_apps, parse_gpus
from modules.facts.parse.os_release import OsRelease, parse_os_release
from modules.hostside.driver_versions import library_in, mismatch, module_in

_PROGRAM = Path(__file__).parents[1] / "hostside" / "gather.py"


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


@dataclass(frozen=True)
class StoredImage:
    """An image on the host, in docker's words; `<none>` where it has no tag or digest."""

    repository: str
    tag: str
    digest: str


@dataclass(frozen=True)
class StoredModel:
    """Bytes on the disk: of the wanted snapshot, and of pieces of a cut download, whose space the next one has."""

    snapshot: int
    pieces: int


@dataclass(frozen=True)
class MachineState:
    """A machine as it says it is.

    `root`: whether the gatherer ran as root, that is, whether sudo needs no password. `gpu_samples`: GPU 0, one sample
    when idle and several when busy; empty with `gpu_trouble` set when nvidia-smi gave none. `oddities`: what was not
    understood and does not matter for going on. `disks` and `models`: by what was asked for. `mismatch`: why the GPU
    can not be had before a restart of the host. `waiting`: packages that want one; `kernels`: those that are installed.
    `fabric`: whether stage fabric has configured ports here.
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

    @property
    def gpu(self) -> Gpu | None:
        """GPU 0 as it first answered."""
        return self.gpu_samples[0] if self.gpu_samples else None


@dataclass(frozen=True)
class NoPython:
    """A host that can not be asked: it has no Python, or none that runs the gatherer. `said`: what it answered."""

    said: str


@cache
def _source() -> str:
    return _PROGRAM.read_text()


class Machine(HostFact["MachineState | NoPython"]):
    """What the machine is, in one round trip, by sudo where that needs no password.

    + paths: whose file systems matter
    + models: any name → (directory of the model's cache, revision)
    """

    @override
    def command(self, paths: Sequence[str], models: Mapping[str, tuple[str, str]]) -> StringCommand:
        wanted = {key: {"directory": directory, "revision": revision} for key, (directory, revision) in models.items()}
        request = {"paths": list(paths), "models": wanted}
        return StringCommand(
            "if ! command -v python3 >/dev/null; then echo not installed; exit 0; fi;",
            "root=; if sudo -n true 2>/dev/null; then root='sudo -n'; fi;",
            "$root python3 -c",
            QuoteString(_source()),
            QuoteString(json.dumps(request)),
            "2>&1 || python3 --version 2>&1",
        )

    @override
    def parse(self, lines: list[str]) -> MachineState | NoPython:
        return machine_state(lines)


def machine_state(lines: Sequence[str]) -> MachineState | NoPython:
    """The state by the gatherer's output. Raises `ParseError` where what must be known is not understood."""
    document = next((line for line in reversed(lines) if line.startswith("{")), None)  # a login banner may come first
    if document is None:
        return NoPython("; ".join(lines[-2:]))
    said: dict[str, Any] = json.loads(document)
    oddities: list[str] = []
    samples, trouble = _gpu_samples(said["gpu"])
    return MachineState(
        python=said["python"],
        root=said["root"],
        user=said["user"],
        architecture=said["machine"],
        kernel=said["kernel"],
        kernel_arguments=tuple((said["files"]["/proc/cmdline"] or "").split()),
        os=parse_os_release(said["files"]["/etc/os-release"] or ""),
        dgx=_dgx(said["files"]["/etc/dgx-release"], oddities),
        memory=parse_meminfo(said["files"]["/proc/meminfo"] or ""),
        reboot_required=said["reboot_required"],
        gpu_samples=samples,
        gpu_trouble=trouble,
        processes=_processes(said["apps"], said["containers"], oddities),
        docker_root=said["docker_root"],
        images=_images(said["images"]),
        disks={path: Disk(**disk) for path, disk in said["disks"].items()},
        models={key: StoredModel(**stored) for key, stored in said["models"].items()},
        oddities=tuple(oddities),
        mismatch=_mismatch(said),
        waiting=tuple(dict.fromkeys((said["files"].get("/run/reboot-required.pkgs") or "").split())),
        kernels=tuple(said.get("kernels") or ()),
        fabric=said.get("fabric", False),
    )


def _mismatch(said: Mapping[str, Any]) -> str | None:
    failed = next((one["output"] for one in said["gpu"] if one is not None and one["status"] != 0), "")
    module = module_in(said["files"].get("/proc/driver/nvidia/version") or "")
    return mismatch(module, library_in(said.get("driver_library") or ""), failed)


def _gpu_samples(answers: list[dict[str, Any] | None]) -> tuple[tuple[Gpu, ...], str | None]:
    samples = []
    for answer in answers:
        if answer is None:
            return (), "nvidia-smi is not installed"
        try:
            gpus = parse_gpus(answer["output"])
        except ParseError as error:
            return (), str(error)
        if answer["status"] != 0 or not gpus:
            return (), f"nvidia-smi ended with status {answer['status']} and {len(gpus)} GPUs"
        samples.append(gpus[0])
    return tuple(samples), None


def _dgx(text: str | None, oddities: list[str]) -> DgxRelease | None:
    try:
        return None if text is None else parse_dgx_release(text)
    except ParseError as error:
        oddities.append(str(error))
        return None


def _processes(
    answer: dict[str, Any] | None, containers: Mapping[str, str], oddities: list[str]
) -> tuple[GpuProcess, ...]:
    if answer is None or answer["status"] != 0:
        return ()
    try:
        apps = parse_compute_apps(answer["output"])
    except ParseError as error:
        oddities.append(str(error))
        return ()
    return tuple(GpuProcess(app.pid, app.name, app.memory_mib, containers.get(str(app.pid))) for app in apps)


def _images(answer: dict[str, Any] | None) -> tuple[StoredImage, ...]:
    if answer is None or answer["status"] != 0:
        return ()
    rows = [line.split() for line in answer["output"].splitlines()]
    return tuple(StoredImage(*row) for row in rows if len(row) == 3)
