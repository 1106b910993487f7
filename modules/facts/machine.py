"""What a machine is, before anything of ours is on it: preflight's one round trip."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pyinfra.api import QuoteString, StringCommand
from typing_extensions import override

from modules.facts.base import HostFact
from modules.facts.machine_state import (
    Disk,
    GpuProcess,
    MachineState,
    NoPython,
    StoredImage,
    StoredModel,
    StrangeFiles,
    Stranger,
)
from modules.facts.parse.dgx_release import DgxRelease, parse_dgx_release
from modules.facts.parse.errors import ParseError
from modules.facts.parse.meminfo import parse_meminfo
from modules.facts.parse.nvidia_smi import Gpu, parse_compute_apps, parse_gpus
from modules.facts.parse.os_release import parse_os_release
from modules.hostside.driver_versions import library_in, mismatch, module_in

_HOSTSIDE = Path(__file__).parents[1] / "hostside"
_PARTS = ("gather_stored.py", "gather_others.py", "gather.py")
_FUTURE = "from __future__ import annotations\n"


@cache
def source() -> str:
    """The gatherer: its files as one text, since nothing can be imported where nothing of ours is."""
    return _FUTURE + "\n".join((_HOSTSIDE / name).read_text().replace(_FUTURE, "") for name in _PARTS)


class Machine(HostFact["MachineState | NoPython"]):
    """What the machine is, in one round trip, by sudo where that needs no password.

    + paths: whose file systems matter
    + models: any name → (directory of the model's cache, revision, and which file of it is served, if it is but one)
    + ports: service → address and port at which it is to listen
    + engines: patterns of processes that are engines
    """

    @override
    def command(
        self,
        paths: Sequence[str],
        models: Mapping[str, tuple[str, str, str | None]],
        ports: Mapping[str, tuple[str, int]] | None = None,
        engines: Sequence[str] = (),
    ) -> StringCommand:
        wanted = {key: dict(zip(("directory", "revision", "file"), each, strict=True)) for key, each in models.items()}
        # A process that has the patterns in its command line would itself be taken for an engine.
        packed = base64.b64encode(json.dumps(list(engines)).encode()).decode()
        request = {"paths": list(paths), "models": wanted, "ports": ports or {}, "engines": packed}
        return StringCommand(
            "if ! command -v python3 >/dev/null; then echo not installed; exit 0; fi;",
            # By its path, since sudo would find an owner's own in /usr/local/bin, which docs/begin.md does not list.
            "python=python3; if sudo -n true 2>/dev/null; then python='sudo -n /usr/bin/python3'; fi;",
            "$python -c",
            QuoteString(source()),
            QuoteString(json.dumps(request)),
            "2>&1 || python3 --version 2>&1",
        )

    @override
    def parse(self, lines: list[str]) -> MachineState | NoPython:
        return machine_state(lines, now=time.time())


def machine_state(lines: Sequence[str], now: float | None = None) -> MachineState | NoPython:
    """The state by the gatherer's output. `now`: the controller's time when it came; None: clocks are not compared.

    Raises `ParseError` where what must be known is not understood.
    """
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
        processes=_processes(said["apps"], said, oddities),
        docker_root=said["docker_root"],
        images=_images(said["images"]),
        disks={path: Disk(**disk) for path, disk in said["disks"].items()},
        models={key: StoredModel(**stored) for key, stored in said["models"].items()},
        oddities=tuple(oddities),
        mismatch=_mismatch(said),
        waiting=tuple(dict.fromkeys((said["files"].get("/run/reboot-required.pkgs") or "").split())),
        kernels=tuple(said.get("kernels") or ()),
        fabric=said.get("fabric", False),
        running=tuple(said.get("running") or ()),
        holders={name: Stranger(**one) for name, one in (said.get("ports") or {}).items() if one is not None},
        engines=tuple(Stranger(**one) for one in said.get("engines") or ()),
        largest=tuple(Stranger(**one) for one in said.get("largest") or ()),
        docker_group=said.get("docker_group"),
        desktop=tuple(said.get("desktop") or ()),
        strange_files=tuple(StrangeFiles(**one) for one in said.get("caches") or ()),
        encodings=said.get("encodings") or {},
        build_seconds=said.get("build_seconds") or {},
        interrupted_install=said.get("interrupted_install", False),
        swappiness=_number(said["files"].get("/proc/sys/vm/swappiness")),
        ahead=0.0 if now is None or "now" not in said else float(said["now"]) - now,
        **_docker(said),
    )


def _docker(said: Mapping[str, Any]) -> dict[str, Any]:
    found, images = said.get("docker") or {}, said["images"]
    return {
        "docker_installed": found.get("installed", True),
        "docker_masked": found.get("masked", False),
        "docker_settings": found.get("settings", ""),
        "docker_answers": images is not None and images["status"] == 0,
    }


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.strip().isdigit() else None


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


def _processes(answer: dict[str, Any] | None, said: Mapping[str, Any], oddities: list[str]) -> tuple[GpuProcess, ...]:
    if answer is None or answer["status"] != 0:
        return ()
    try:
        apps = parse_compute_apps(answer["output"])
    except ParseError as error:
        oddities.append(str(error))
        return ()
    units = {pid: one["unit"] for pid, one in (said.get("gpu_units") or {}).items()}
    return tuple(
        GpuProcess(app.pid, app.name, app.memory_mib, said["containers"].get(str(app.pid)), units.get(str(app.pid)))
        for app in apps
    )


def _images(answer: dict[str, Any] | None) -> tuple[StoredImage, ...]:
    if answer is None or answer["status"] != 0:
        return ()
    rows = [line.split() for line in answer["output"].splitlines()]
    return tuple(StoredImage(*row) for row in rows if len(row) == 3)
