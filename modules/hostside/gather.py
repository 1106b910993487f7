"""Print what this machine is, as one JSON document on one line: raw outputs and bytes, which the controller parses.

Preflight sends the text of gather_stored.py, gather_others.py and this file, one after the other, to `python3 -c`
before anything of ours is on the host, so it runs on every Python from 3.7 on, with whatever programs are missing
there. Its argument is a JSON object: `paths` (whose file systems matter), `models` (repository → the `directory` of its
cache, its `revision`, and the `file` that is served of it), `ports` (service → address and port) and `engines`
(patterns of their processes, a JSON list in base64).
"""

from __future__ import annotations

import grp
import json
import os
import platform
import pwd
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.gather_others import Processes, not_of_its_owner
    from modules.hostside.gather_stored import build_seconds, disk, model, sizes_in, text_of

_GPU = "name,driver_version,pstate,clocks.sm,clocks.max.sm,power.draw,temperature.gpu,utilization.gpu"
_REASONS = "clocks_event_reasons.active"
_FILES = (
    "/etc/os-release",
    "/etc/dgx-release",
    "/proc/meminfo",
    "/proc/sys/vm/swappiness",
    "/proc/cmdline",
    "/proc/driver/nvidia/version",
    "/run/reboot-required.pkgs",
)
_STATE = Path("/var/lib/tinderbox")
_DESKTOPS = ("display-manager.service", "gdm.service", "gdm3.service", "lightdm.service", "sddm.service")
_BUSY_PCT = 90
_PAUSE_S = 0.5
_TIMEOUT_S = 20


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


def docker_state() -> dict[str, Any]:
    """What keeps dockerd from starting: its unit is masked, or its settings are no JSON object."""
    unit, trouble = Path("/etc/systemd/system/docker.service"), ""
    try:
        if not isinstance(json.loads(text_of("/etc/docker/daemon.json") or "{}"), dict):
            trouble = "it is no JSON object"
    except ValueError as error:
        trouble = str(error)
    masked = unit.is_symlink() and str(unit.resolve()) == "/dev/null"
    return {
        "masked": masked,
        "settings": trouble,
        "installed": shutil.which("dockerd", path="/usr/bin:/usr/sbin") is not None,
    }


def may_use_docker(user: str) -> bool | None:
    """Whether the user who logs in is in docker's group; None where there is no such group or user."""
    try:
        group, who = grp.getgrnam("docker"), pwd.getpwnam(user)
    except KeyError:
        return None
    return who.pw_uid == 0 or user in group.gr_mem or who.pw_gid == group.gr_gid


def home_of(user: str) -> str:
    """A user's home directory."""
    try:
        return pwd.getpwnam(user).pw_dir
    except KeyError:
        return "/nonexistent"


def gather(request: dict[str, Any]) -> dict[str, Any]:
    """Everything that preflight asks."""
    root = docker_root()
    apps = run("nvidia-smi", "--query-compute-apps=pid,process_name,used_gpu_memory", "--format=csv")
    pids = [] if apps is None else re.findall(r"^(\d+),", apps["output"], re.MULTILINE)
    uname, others = os.uname(), Processes(root)
    user = os.environ.get("SUDO_USER") or pwd.getpwuid(os.geteuid()).pw_name
    caches = sorted({f"{home_of(user)}/.cache/huggingface", *request["paths"]})
    return {
        "python": platform.python_version(),
        "root": os.geteuid() == 0,
        "user": user,
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
        "docker": docker_state(),
        "docker_group": may_use_docker(user),
        "running": [container["name"] for container in others.running.values()],
        "ports": {name: others.holder(*at) for name, at in request.get("ports", {}).items()},
        "engines": others.engines(request["engines"]) if "engines" in request else [],
        "largest": others.largest(),
        "gpu_units": {pid: others.told(int(pid)) for pid in pids},
        "desktop": others.in_unit(_DESKTOPS),
        "caches": [found for found in map(not_of_its_owner, caches) if found is not None],
        "encodings": sizes_in(_STATE / "encodings"),
        "build_seconds": build_seconds(),
        "interrupted_install": any(path.name.isdigit() for path in Path("/var/lib/dpkg/updates").glob("*")),
        "now": time.time(),
    }


if __name__ == "__main__":
    print(json.dumps(gather(json.loads(sys.argv[1]))))
