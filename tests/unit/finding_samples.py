"""Every finding of the catalog: the state of a Spark in which it is found, and the state after its remedy.

A remedy that is commands changes the state as those commands do: `after` says what the gatherer tells then. Where it is
a change of the fleet file, what the finding itself says is laid over the settings; where it takes the host out of the
fleet file, nothing is left to judge. tests/lab/test_check.py applies to a host what can be applied there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from modules.catalog import load_catalog
from modules.fleet import HostPlan
from modules.fleet.plan import host_plan
from modules.spec.fleet import ResolvedHost, Ssh
from modules.spec.settings import HostSettings
from tests.unit.fabric_samples import fabric
from tests.unit.preflight_machine import GIB, GPU_HEADER, HOME, disk, gpu

SERVICE = "gpt-oss"
MODEL = load_catalog().models["gpt-oss-120b"]
SMALL = load_catalog().models["gpt-oss-20b"]
KEY = f"{MODEL.repository}@{MODEL.revision}"
NOTHING_STORED = {KEY: {"snapshot": 0, "pieces": 0}}
MEMINFO = (
    "MemTotal: 125444812 kB\nMemFree: {free} kB\nMemAvailable: {available} kB\nCached: {cached} kB\n"
    "SwapTotal: {swap} kB\nSwapFree: {unswapped} kB\n"
)
LEAVES_THE_FLEET = "leaves the fleet"
DRIVER = {"/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  580.95.05  R\n"}
OLLAMA = {"pid": 911, "name": "ollama", "memory": 2 * GIB, "container": None, "image": None, "unit": "ollama.service"}
SPARKRUN = {
    "pid": 4711, "name": "python3", "memory": 3 * GIB, "container": "sparkrun_gptoss_solo",
    "image": "scitrera/dgx-spark-vllm:0.13.0", "unit": None,
}  # fmt: skip


@dataclass(frozen=True)
class Sample:
    """`before`: what the gatherer says otherwise than of a good Spark. `after`: the same, once the remedy was applied.

    `settings`: of the host. `after` is None where the remedy changes the fleet file; LEAVES_THE_FLEET where it takes
    the host out of it; for a finding with nothing to do, `after` is what makes it go in time.
    """

    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] | str | None = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    python: bool = True


def memory(free: int = 108, available: int = 115, cached: int = 5, swap: int = 16, swapped: int = 0) -> dict[str, Any]:
    """What /proc/meminfo says, in GiB."""
    kib = {"free": free, "available": available, "cached": cached, "swap": swap, "unswapped": swap - swapped}
    return {"/proc/meminfo": MEMINFO.format(**{name: size * 2**20 for name, size in kib.items()})}


def apps(*rows: str) -> dict[str, Any]:
    """What nvidia-smi says of processes."""
    return {"status": 0, "output": "\n".join(["pid, process_name, used_gpu_memory [MiB]", *rows, ""])}


def reasons(mask: str, degrees: int = 60) -> list[dict[str, Any]]:
    """A GPU whose clocks are held back for these reasons."""
    fields = GPU_HEADER.strip() + ", temperature.gpu, clocks_event_reasons.active"
    values = f"NVIDIA GB10, 580.142, P0, 1400 MHz, 45 W, 40 %, {degrees}, {mask}"
    return [{"status": 0, "output": f"{fields}\n{values}\n"}]


def plan_of(settings: Mapping[str, Any]) -> HostPlan:
    """gpt-oss-120b on NVIDIA's vLLM, with these settings of the host."""
    services = {SERVICE: {"engine": "vllm", "model": "gpt-oss-120b"}}
    host = ResolvedHost(
        name="spark-1", address="spark-1", ssh=Ssh(), groups=(),
        settings=HostSettings.model_validate({"services": services} | dict(settings)),
    )  # fmt: skip
    return host_plan(host, load_catalog())


def with_flags(**flags: Any) -> dict[str, Any]:
    """The service with these flags."""
    return {"services": {SERVICE: {"engine": "vllm", "model": "gpt-oss-120b", "flags": flags}}}


BUSY: dict[str, Any] = {"mhz": "611 MHz", "watts": "13 W", "use": 96}
SAMPLES: dict[str, Sample] = {
    "python-missing": Sample(python=False),
    "python-old": Sample({"python": "3.9.18"}),
    "sudo-password": Sample({"root": False}),
    "architecture": Sample({"machine": "x86_64"}, LEAVES_THE_FLEET),
    "system-other": Sample({"files": {"/etc/os-release": 'ID=ubuntu\nVERSION_ID="22.04"\n', "/etc/dgx-release": None}}),
    "kernel-panics": Sample({"kernel": "6.17.0-1008-nvidia"}),
    "kernel-kho": Sample(
        {"kernel": "7.0.0-1019-nvidia", "files": {"/proc/cmdline": "ro quiet\n"}},
        {"kernel": "7.0.0-1019-nvidia", "files": {"/proc/cmdline": "ro quiet kho=off\n"}},
    ),
    "reboot-pending": Sample({"reboot_required": True}),
    "clock-wrong": Sample({"now": 1_796_000_000 - 5 * 3600}, {"now": 1_796_000_000}),
    "install-interrupted": Sample({"interrupted_install": True}),
    "fabric-left": Sample({"fabric": True}),
    "not-understood": Sample({"files": {"/etc/dgx-release": "DGX Spark\n"}}),
    "driver-mismatch": Sample(
        {"files": DRIVER, "driver_library": "libnvidia-ml.so.580.126.09"},
        {"files": {path: text.replace("580.95.05", "580.126.09") for path, text in DRIVER.items()}}
        | {"driver_library": "libnvidia-ml.so.580.126.09"},
    ),
    "gpu-silent": Sample({"gpu": [{"status": 9, "output": "NVIDIA-SMI has failed because it couldn't communicate\n"}]}),
    "gpu-other": Sample({"gpu": [gpu(name="NVIDIA GeForce RTX 5090")]}, LEAVES_THE_FLEET),
    "gpu-real": Sample({}, None, {"hardware": {"simulated": True, "gpu": "NVIDIA GB10 (simulated)"}}),
    "gpu-of-the-lab": Sample({"gpu": [gpu(name="NVIDIA GB10 (simulated)")]}, LEAVES_THE_FLEET),
    "gpu-simulated": Sample(
        {"gpu": [gpu(name="NVIDIA GB10 (simulated)")]},
        LEAVES_THE_FLEET,
        {"hardware": {"simulated": True, "gpu": "NVIDIA GB10 (simulated)"}},
    ),
    "driver-other": Sample({"gpu": [gpu(driver="590.48.01")]}),
    "power-low": Sample({"gpu": [gpu(**BUSY)] * 3}, {"gpu": [gpu(mhz="2411 MHz", watts="42 W", use=96)] * 3}),
    "gpu-hot": Sample({"gpu": reasons("0x0000000000000020", 92)}, {"gpu": reasons("0x0000000000000000", 71)}),
    "power-brake": Sample({"gpu": reasons("0x0000000000000080")}, {"gpu": reasons("0x0000000000000000")}),
    "gpu-in-use": Sample(
        {"apps": apps("4712, python3, 20480 MiB"), "containers": {"4712": "comfyui"}},
        {"apps": apps()},
    ),
    "engine-foreign": Sample(
        {"engines": [{**SPARKRUN, "engine": "vllm serve"}], "apps": apps("4711, VLLM::EngineCore, 71680 MiB")},
        {"engines": [], "apps": apps()},
    ),
    "port-taken": Sample({"ports": {SERVICE: OLLAMA}}, {"ports": {SERVICE: None}}),
    "memory-small": Sample({}, None, {"hardware": {"memory_gib": 125.0}}),
    "memory-plan": Sample({}, None, with_flags(**{"gpu-memory-utilization": 0.3})),
    "memory-shared": Sample(
        {"models": NOTHING_STORED | {f"{SMALL.repository}@{SMALL.revision}": {"snapshot": 0, "pieces": 0}}},
        None,
        {
            "services": {
                SERVICE: {"engine": "vllm", "model": "gpt-oss-120b", "flags": {"gpu-memory-utilization": 0.65}},
                "small": {
                    "engine": "vllm",
                    "model": "gpt-oss-20b",
                    "port": 8001,
                    "priority": -1,
                    "flags": {"gpu-memory-utilization": 0.4},
                },
            }
        },
    ),
    "memory-held": Sample(
        {"files": memory(free=20, available=40), "largest": [{**OLLAMA, "memory": 70 * GIB}]}, {"files": memory()}
    ),
    "swap-in-use": Sample({"files": memory(swapped=5)}, {"files": memory()}),
    "swappiness": Sample({"files": {"/proc/sys/vm/swappiness": "60\n"}}, None),
    "page-cache": Sample({"files": memory(free=30, cached=80)}, {"files": memory()}),
    "desktop": Sample({"desktop": ["gdm.service"]}, None),
    "docker-masked": Sample({"docker": {"masked": True, "settings": "", "installed": True}}),
    "docker-settings": Sample({"docker": {"masked": False, "settings": "Expecting value: line 1", "installed": True}}),
    "docker-silent": Sample({"images": {"status": 1, "output": "Cannot connect to the Docker daemon\n"}}),
    "docker-group": Sample({"docker_group": False}, {"docker_group": True}),
    "disk-space": Sample(
        {"disks": {path: disk(60) for path in ("/", "/var/lib/docker", HOME)}},
        {"disks": {"/": disk(60), "/var/lib/docker": disk(60), HOME: disk(900, mount="/data", device=2)}},
    ),
    "cache-owner": Sample(
        {"caches": [{"path": "/home/nvidia/.cache/huggingface", "home": "/home/nvidia", "strange": 12}]}
    ),
}
# Findings with which a host may still be, of a severity that is not the entry's first.
OTHER_SEVERITIES: dict[tuple[str, str], Sample] = {
    ("kernel-kho", "slow"): Sample(
        {"kernel": "7.0.0-1019-nvidia"},
        {"kernel": "7.0.0-1019-nvidia", "files": {"/proc/cmdline": "ro quiet kho=off\n"}},
        {"fabric": fabric("direct")},
    ),
    ("power-low", "slow"): Sample({"gpu": [gpu(mhz="2411 MHz", watts="18 W", use=96)] * 3}),
    ("engine-foreign", "slow"): Sample(
        {"engines": [{**SPARKRUN, "engine": "vllm serve"}], "running": [f"tinderbox-{SERVICE}", "sparkrun_gptoss_solo"]}
    ),
    ("memory-plan", "slow"): Sample(
        {},
        None,
        {"services": {SERVICE: {"engine": "vllm", "model": "gpt-oss-120b", "memory_plan": "warn",
                                "flags": {"gpu-memory-utilization": 0.3}}}},
    ),
}  # fmt: skip
