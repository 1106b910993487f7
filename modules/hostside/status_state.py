"""How this host and its services are at this moment, as one JSON object on one line. Changes nothing.

Standard input: one line of JSON, `services`: name → `api` (address and port; null: it has none here), `key` (file and
variable of its API key, or null). What the ledger knows beside these is told, too. The controller sends this file's
text along with the modules that it needs, so that it also runs where nothing of ours, or an older version, is
installed. It uses few modules of Python and no program that it can do without: sixteen hosts are asked at once, and in
a lab they share the controller's cores. What can not be learned is null, never guessed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import zlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside import whose_process as whose
    from modules.hostside.engine_sample import figures
    from modules.hostside.plain_http import get
    from modules.hostside.status_service import RUN, document, services, written_down
else:
    import whose_process as whose
    from engine_sample import figures
    from plain_http import get
    from status_service import RUN, document, services, written_down

FORM = 1
HOME = "/usr/local/lib/tinderbox"
DOCKER = "/run/docker.sock"
# From one look at the engine's counters to the next.
WINDOW_S = 0.5
_ASK_S, _PROGRAM_S = 1.5, 5.0
_UNIT = (
    "Id,LoadState,ActiveState,SubState,Result,NRestarts,UnitFileState,Job,ExecMainStatus,"
    "ActiveEnterTimestamp,InactiveEnterTimestamp,InactiveExitTimestamp,StateChangeTimestamp"
)
_GPU = "name,driver_version,pstate,clocks.sm,clocks.max.sm,power.draw,temperature.gpu,utilization.gpu"
_APPS = "pid,process_name,used_gpu_memory"
Wishes = dict[str, dict[str, Any]]


def begin(*words: str) -> subprocess.Popen[bytes] | None:
    """Start a program; None where the host has it not."""
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    try:
        return subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={"PATH": path, "LC_ALL": "C"},
        )  # fmt: skip
    except OSError:
        return None


def said(process: subprocess.Popen[bytes] | None) -> dict[str, Any] | None:
    """What it printed and how it ended; null where it is not there, or does not end."""
    if process is None:
        return None
    try:
        out, _ = process.communicate(timeout=_PROGRAM_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return None
    return {"status": process.returncode, "out": out.decode(errors="replace")}


def key_in(file: str, variable: str) -> str | None:
    """An API key of an environment file."""
    lines = (line.partition("=") for line in whose.read(file).splitlines())
    return next((value for name, _, value in lines if name == variable and value), None)


def sampled(wish: dict[str, Any], into: list[Any]) -> None:
    """Two looks at an engine's counters, each with when it was."""
    address, port = wish["api"]
    key = key_in(*wish["key"]) if wish.get("key") else None
    for at in range(2):
        began = time.monotonic()
        text = get((address, port), "/metrics", _ASK_S, key)
        ended = time.monotonic()
        into.append(None if text is None else {"at": (began + ended) / 2, "figures": figures(text)})
        if text is None or at:
            return
        time.sleep(max(0.0, WINDOW_S - (time.monotonic() - ended)))


def containers() -> list[dict[str, Any]] | None:
    """Those that run, with their labels of ours; null where docker does not answer, or not to us."""
    if not os.path.exists(DOCKER):  # noqa: PTH110
        return []
    text = get(DOCKER, "/containers/json", _ASK_S)
    try:
        found = json.loads(text or "null")
    except ValueError:
        found = None
    if not isinstance(found, list):
        return None
    return [
        {
            "id": one["Id"],
            "name": str((one.get("Names") or [""])[0]).lstrip("/"),
            "service": (one.get("Labels") or {}).get("tinderbox.service"),
            "release": (one.get("Labels") or {}).get("tinderbox.release"),
        }
        for one in found
    ]


def programs(home: str = HOME) -> int | None:
    """A sum over all that the folder of our programs holds; null where there is none."""
    total = None
    try:
        names = sorted(entry.name for entry in os.scandir(home) if entry.is_file(follow_symlinks=False))
        for name in names:
            with open(f"{home}/{name}", "rb") as file:  # noqa: PTH123
                total = zlib.crc32(file.read(), zlib.crc32(name.encode(), total or 0))
    except OSError:
        return None
    return total


def unit_blocks(text: str) -> dict[str, dict[str, str]]:
    """Unit → its properties."""
    blocks = (dict(line.partition("=")[::2] for line in block.splitlines()) for block in text.split("\n\n"))
    return {block["Id"]: block for block in blocks if "Id" in block}


def run_under_way() -> dict[str, Any] | None:
    """Who holds this host for a run that changes it."""
    held = document(f"{RUN}/run.lock")
    return held if held and os.path.exists(f"/proc/{held.get('here')}") else None  # noqa: PTH110


def process_facts(wishes: Wishes, own: set[str], apps: str) -> dict[str, Any]:
    """Of processes that matter: on the GPU, at a service's port, or in a container of ours.

    `own`: ids of our containers. `ports`: port → processes, null where somebody listens and can not be seen from here.
    """
    table = whose.processes()
    sockets = whose.listening({int(wish["api"][1]) for wish in wishes.values() if wish["api"]})
    ours = [pid for pid, (container, unit) in table.items() if container in own or unit is not None]
    held = whose.holders(sockets, [*ours, *(table.keys() - set(ours))]) if any(sockets.values()) else {}
    on_gpu = [int(first) for first in (line.split(",")[0].strip() for line in apps.splitlines()) if first.isdigit()]
    told = {*on_gpu, *(pid for ones in held.values() for pid in ones)}
    memory: dict[str, int] = {}
    for pid in ours:
        container, unit = table[pid]
        place = container if container in own else unit
        memory[str(place)] = memory.get(str(place), 0) + whose.own_memory(pid)
    return {
        "pids": {
            str(pid): {"name": whose.name_of(pid), "container": table[pid][0], "unit": table[pid][1]}
            for pid in told
            if pid in table
        },
        "ports": {str(port): (held.get(port) or None) if ones else [] for port, ones in sockets.items()},
        "memory": memory,
    }


def state(wishes: Wishes) -> dict[str, Any]:
    """The whole answer."""
    samples: dict[str, list[Any]] = {name: [] for name, wish in wishes.items() if wish["api"]}
    looking = [threading.Thread(target=sampled, args=(wishes[name], into)) for name, into in samples.items()]
    for thread in looking:
        thread.start()
    names = sorted({*wishes, *services()})
    units = [unit for name in names for unit in (f"tinderbox-{name}.service", f"tinderbox-watch@{name}.service")]
    show = ("systemctl", "show", "--timestamp=unix", f"--property={_UNIT}", *units, "tinderbox-job-*.service")
    asked = [
        begin(*show),
        begin("nvidia-smi", f"--query-gpu={_GPU}", "--format=csv"),
        begin("nvidia-smi", f"--query-compute-apps={_APPS}", "--format=csv"),
    ]
    written = {name: written_down(name) for name in names}
    running = containers()
    own = {one["id"] for one in running or () if one["service"] or one["name"].startswith("tinderbox-")}
    systemd, gpu, apps = map(said, asked)
    facts = process_facts(wishes, own, (apps or {}).get("out", ""))
    for thread in looking:
        thread.join()
    shown = unit_blocks(systemd["out"]) if systemd is not None and systemd["status"] == 0 else None
    return {
        "form": FORM,
        "at": time.time(),
        "root": os.geteuid() == 0,
        "uptime_s": float((whose.read("/proc/uptime").split() or ["0"])[0]),
        "programs": programs(),
        "meminfo": whose.read("/proc/meminfo"),
        "gpu": gpu,
        "apps": apps,
        "containers": running,
        "units": shown,
        "run": run_under_way(),
        **facts,
        "services": {name: {**written[name], "samples": samples.get(name)} for name in names},
    }


def main() -> int:
    """Print it."""
    wishes: Wishes = json.loads(sys.stdin.readline())["services"]
    sys.stdout.write(json.dumps({"status": state(wishes)}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
