"""Print what this machine is, as one JSON document on one line: raw outputs and bytes, which the controller parses.

Preflight sends this file's text to `python3 -c` before anything of ours is on the host, so it runs on every Python from
3.7 on, with whatever programs are missing there. Its argument is a JSON object: `paths` (whose file systems matter) and
`models` (repository → the `directory` of its cache, and its `revision`).
"""

from __future__ import annotations

import json
import os
import platform
import pwd
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

_GPU = "name,driver_version,pstate,clocks.sm,clocks.max.sm,power.draw,temperature.gpu,utilization.gpu"
_REASONS = "clocks_event_reasons.active"
_FILES = (
    "/etc/os-release",
    "/etc/dgx-release",
    "/proc/meminfo",
    "/proc/cmdline",
    "/proc/driver/nvidia/version",
    "/run/reboot-required.pkgs",
)
_BUSY_PCT = 90
_PAUSE_S = 0.5
_TIMEOUT_S = 20


def text_of(path: str | Path) -> str | None:
    """The text of a file, None where none can be read."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def run(*command: str) -> dict[str, Any] | None:
    """Exit status and output of a program; None where it is not installed, status 124 where it does not end."""
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, timeout=_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return {"status": 124, "output": f"no answer in {_TIMEOUT_S} s"}
    except OSError:
        return None
    return {"status": done.returncode, "output": done.stdout.decode(errors="replace")}


def gpu_samples() -> list[dict[str, Any] | None]:
    """One sample of an idle GPU, three of a busy one: a single one may fall between two requests."""
    fields = f"{_GPU},{_REASONS}"
    first = run("nvidia-smi", f"--query-gpu={fields}", "--format=csv")
    if first is not None and "not a valid field" in first["output"]:  # drivers before 535 have another name for it
        fields = _GPU
        first = run("nvidia-smi", f"--query-gpu={fields}", "--format=csv")
    samples = [first]
    if first is not None and any(int(use) >= _BUSY_PCT for use in re.findall(r"(\d+) %", first["output"])):
        for _ in range(2):
            time.sleep(_PAUSE_S)
            samples.append(run("nvidia-smi", f"--query-gpu={fields}", "--format=csv"))
    return samples


def driver_library() -> str | None:
    """The file of the driver's user libraries that programs load."""
    return next((path.resolve().name for path in sorted(Path("/usr/lib").glob("*/libnvidia-ml.so.1"))), None)


def docker_root() -> str:
    """Where docker keeps its images."""
    try:
        return str(json.loads(text_of("/etc/docker/daemon.json") or "{}").get("data-root") or "/var/lib/docker")
    except (ValueError, AttributeError):
        return "/var/lib/docker"


def containers(pids: list[str], root: str) -> dict[str, str]:
    """Process → name of the container that it runs in, for those that run in one."""
    names = {}
    for pid in pids:
        found = re.search(r"docker[-/]([0-9a-f]{64})", text_of(f"/proc/{pid}/cgroup") or "")
        config = text_of(f"{root}/containers/{found[1]}/config.v2.json") if found else None
        if config is not None:
            names[pid] = str(json.loads(config).get("Name", "")).lstrip("/")
    return names


def disk(path: str) -> dict[str, Any]:
    """The file system that `path` is on, or would be on once it is made."""
    there = Path(path)
    while not there.exists():
        there = there.parent
    mount = there.resolve()
    while not mount.is_mount():
        mount = mount.parent
    size = os.statvfs(there)
    return {
        "mount": str(mount),
        "device": there.stat().st_dev,
        "free": size.f_bavail * size.f_frsize,
        "total": size.f_blocks * size.f_frsize,
    }


def bytes_in(directory: Path, wanted: Callable[[str], bool]) -> int:
    """What the files under `directory` that are wanted take on the disk; links are followed, no file counts twice."""
    seen = {}
    for folder, _, files in os.walk(directory):
        for name in filter(wanted, files):
            try:
                entry = (Path(folder) / name).stat()
            except OSError:
                continue
            seen[entry.st_dev, entry.st_ino] = entry.st_blocks * 512
    return sum(seen.values())


def model(directory: str, revision: str) -> dict[str, int]:
    """What is here of a model: its snapshot's files, and pieces of a cut download, whose space the next one has."""
    cache = Path(directory)
    commit = (text_of(cache / "refs" / revision) or revision).strip()
    return {
        "snapshot": bytes_in(cache / "snapshots" / commit, lambda name: True),
        "pieces": bytes_in(cache / "blobs", lambda name: name.endswith(".incomplete")),
    }


def gather(request: dict[str, Any]) -> dict[str, Any]:
    """Everything that preflight asks."""
    root = docker_root()
    apps = run("nvidia-smi", "--query-compute-apps=pid,process_name,used_gpu_memory", "--format=csv")
    pids = [] if apps is None else re.findall(r"^(\d+),", apps["output"], re.MULTILINE)
    uname = os.uname()
    return {
        "python": platform.python_version(),
        "root": os.geteuid() == 0,
        "user": os.environ.get("SUDO_USER") or pwd.getpwuid(os.geteuid()).pw_name,
        "machine": uname.machine,
        "kernel": uname.release,
        "files": {path: text_of(path) for path in _FILES},
        "reboot_required": Path("/run/reboot-required").exists(),
        "kernels": sorted(path.name[len("vmlinuz-") :] for path in Path("/boot").glob("vmlinuz-*")),
        "fabric": Path("/var/lib/tinderbox/fabric/former.json").exists(),
        "driver_library": driver_library(),
        "gpu": gpu_samples(),
        "apps": apps,
        "containers": containers(pids, root),
        "docker_root": root,
        "images": run("docker", "image", "ls", "--digests", "--format", "{{.Repository}} {{.Tag}} {{.Digest}}"),
        "disks": {path: disk(path) for path in ("/", root, *request["paths"])},
        "models": {repository: model(**where) for repository, where in request["models"].items()},
    }


if __name__ == "__main__":
    print(json.dumps(gather(json.loads(sys.argv[1]))))
