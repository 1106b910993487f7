"""A Spark and a plan for it, for tests that change one thing of either."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from modules.catalog import load_catalog
from modules.fleet import HostPlan, ServicePlan
from modules.images import build_of
from modules.spec.engine import Engine, Readiness
from modules.spec.image import Recipe
from modules.spec.model import Model
from modules.spec.settings import HostSettings

SAMPLES = Path(__file__).parents[1] / "samples"
COMMIT = "a" * 40
HOME = "/var/lib/tinderbox/huggingface"
GIB = 2**30
BUILT = load_catalog().images["vllm-cpu"].model_copy(update={"size_gib": 25.0})
TAG = build_of(BUILT).tag
GPU_HEADER = "name, driver_version, pstate, clocks.current.sm [MHz], power.draw [W], utilization.gpu [%]\n"


def gpu(
    name: str = "NVIDIA GB10", driver: str = "580.142", mhz: str = "2411 MHz", watts: str = "11 W", use: int = 0
) -> dict[str, Any]:
    """An answer of nvidia-smi."""
    return {"status": 0, "output": f"{GPU_HEADER}{name}, {driver}, P0, {mhz}, {watts}, {use} %\n"}


def disk(free_gib: float, mount: str = "/", device: int = 1) -> dict[str, Any]:
    """A file system of 4 TB."""
    return {"mount": mount, "device": device, "free": int(free_gib * GIB), "total": 3726 * GIB}


def document(**changes: Any) -> dict[str, Any]:
    """What the gatherer says of a Spark on which nothing of ours is yet."""
    files = {
        "/etc/os-release": (SAMPLES / "os-release-ubuntu").read_text(),
        "/etc/dgx-release": (SAMPLES / "dgx-release").read_text(),
        "/proc/meminfo": (SAMPLES / "meminfo").read_text(),
        "/proc/cmdline": "BOOT_IMAGE=/boot/vmlinuz root=UUID=1 ro quiet\n",
    }
    said: dict[str, Any] = {
        "python": "3.12.3",
        "root": True,
        "user": "nvidia",
        "machine": "aarch64",
        "kernel": "6.17.0-1029-nvidia",
        "files": files | changes.pop("files", {}),
        "reboot_required": False,
        "gpu": [gpu()],
        "apps": {"status": 0, "output": "pid, process_name, used_gpu_memory [MiB]\n"},
        "containers": {},
        "docker_root": "/var/lib/docker",
        "images": {"status": 0, "output": ""},
        "disks": {path: disk(3000) for path in ("/", "/var/lib/docker", HOME)},
        "models": {f"openai/gpt-oss-120b@{COMMIT}": {"snapshot": 0, "pieces": 0}},
    }
    return said | changes


def answer(**changes: Any) -> list[str]:
    """The same as lines of output."""
    return [json.dumps(document(**changes))]


def plan(recipe: Recipe | None = None, **hardware: Any) -> HostPlan:
    """gpt-oss-120b (61 GiB) on an engine whose image takes 25 GiB."""
    settings = HostSettings.model_validate(
        {"hardware": hardware, "services": {"gpt-oss": {"engine": "vllm", "model": "gpt-oss-120b"}}}
    )
    service = ServicePlan(
        name="gpt-oss",
        service=settings.services["gpt-oss"],
        engine=Engine(
            recipe="vllm-image",
            command=("vllm", "serve"),
            profiles={"latency": {}},
            readiness=Readiness(start_minutes=1),
            process="vllm",
            source="test",
        ),
        model=Model(repository="openai/gpt-oss-120b", revision=COMMIT, size_gib=61, served_as="gpt-oss", source="test"),
        recipe=BUILT if recipe is None else recipe,
        flags={},
        gate=None,
        encodings={},
    )
    return HostPlan(name="spark-1", settings=settings, services=(service,))
