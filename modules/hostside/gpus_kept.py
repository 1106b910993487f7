"""Have systemd read its units anew, and see that the engines that run still have their GPU.

Where systemd keeps the containers' control groups (docker's systemd cgroup driver), a reload sets their device rules
anew, by what systemd knows of them: a container can lose its GPU by that, while its server goes on listening.
`systemctl enable` and `disable` reload, too. Known as "Failed to initialize NVML: Unknown Error" in a container after a
daemon-reload (NVIDIA container toolkit, troubleshooting); what is done here about it is unverified on hardware.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.service_unit import run, unit_name
else:
    from service_unit import run, unit_name

MARK = "gpu-check: "
NOTE = "its container had lost the GPU after systemd read its units anew"
_FORM = '{{index .Config.Labels "tinderbox.service"}} {{json .HostConfig.DeviceRequests}}'


@contextmanager
def gpus_kept(lost: Callable[[str], object] = lambda _: None) -> Iterator[None]:
    """Have systemd reload within this. `lost`: told of each service whose engine has no GPU any more; it restarts."""
    before = [service for service in _with_gpus() if _sees_gpu(service)]
    yield
    for service in before:
        if not _sees_gpu(service):
            print(f"{MARK}service {service} is restarted: {NOTE}", file=sys.stderr, flush=True)
            lost(service)
            # Not waited for: it loads for minutes. It counts like any other start of the unit.
            subprocess.run(["systemctl", "restart", "--no-block", unit_name(service)], check=False)


def _with_gpus() -> list[str]:
    """The services whose containers were given GPUs, and run."""
    ids = (run("docker", "ps", "--quiet", "--filter", "label=tinderbox.service") or "").split()
    rows = (run("docker", "inspect", "--format", _FORM, *ids) or "").splitlines() if ids else []
    return sorted(service for service, asked in (row.split(" ", 1) for row in rows) if asked not in {"null", "[]"})


def _sees_gpu(service: str) -> bool:
    return "GPU " in (run("docker", "exec", f"tinderbox-{service}", "nvidia-smi", "-L") or "")
