"""What the GPU does, for Prometheus, in the forms in which GB10's nvidia-smi answers.

A GB10 has no memory of its own, so nvidia-smi says N/A for it: only its list of processes has figures. What it does not
tell is left out, and never a zero.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.exposition import Family
else:
    from exposition import Family

_FIELDS = (
    "name", "driver_version", "utilization.gpu", "power.draw", "temperature.gpu", "clocks.sm", "clocks.max.sm",
    "clocks_event_reasons.active",
)  # fmt: skip
_MIB, _MHZ = 1024**2, 1e6
_NUMBER = re.compile(r"([+-]?\d+(?:\.\d+)?)(?: (?:%|W|MHz|MiB|C))?")
# nvml.h, nvmlClocksEventReason*: what holds the clocks back. Without "idle" (0x1), which holds nothing back.
REASONS = {
    0x2: "applications-clocks",
    0x4: "software-power-cap",
    0x8: "hardware-slowdown",
    0x10: "sync-boost",
    0x20: "software-thermal",
    0x40: "hardware-thermal",
    0x80: "hardware-power-brake",
    0x100: "display-clock",
}
Ask = Callable[..., "str | None"]


def ask(*options: str) -> str | None:
    """What nvidia-smi prints, or None where it fails or is not there."""
    try:
        done = subprocess.run(
            ["nvidia-smi", *options], capture_output=True, text=True, errors="replace", check=False, timeout=10,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def gpu_families(asked: Ask = ask) -> list[Family]:
    """Families of all GPUs. `tinderbox_source_up` for nvidia-smi: 0 where it gave no answer that is understood."""
    rows = _rows(asked(f"--query-gpu={','.join(_FIELDS)}", "--format=csv"))
    apps = asked("--query-compute-apps=pid,process_name,used_gpu_memory", "--format=csv")
    info = Family("tinderbox_gpu_info", "1 for each GPU: its name and driver.")
    busy = Family("tinderbox_gpu_utilization_ratio", "Share of time in which the GPU did something.")
    power = Family("tinderbox_gpu_power_watts", "Power that the GPU draws.")
    heat = Family("tinderbox_gpu_temperature_celsius", "Temperature of the GPU.")
    clock = Family("tinderbox_gpu_sm_clock_hertz", "Clock of the GPU's multiprocessors now.")
    most = Family("tinderbox_gpu_sm_clock_max_hertz", "Highest clock of the GPU's multiprocessors.")
    limit = Family("tinderbox_gpu_clock_limited", "1 where this holds the clocks back. All 0 proves nothing on a GB10.")
    for index, row in enumerate(rows):
        gpu = str(index)
        info.add(1, gpu=gpu, name=row["name"], driver=row["driver_version"])
        busy.add(_times(_figure(row["utilization.gpu"]), 0.01), gpu=gpu)
        power.add(_figure(row["power.draw"]), gpu=gpu)
        heat.add(_figure(row["temperature.gpu"]), gpu=gpu)
        clock.add(_times(_figure(row["clocks.sm"]), _MHZ), gpu=gpu)
        most.add(_times(_figure(row["clocks.max.sm"]), _MHZ), gpu=gpu)
        mask = row["clocks_event_reasons.active"]
        if re.fullmatch(r"0x[0-9a-fA-F]+", mask):
            for bit, reason in REASONS.items():
                limit.add(float(bool(int(mask, 16) & bit)), gpu=gpu, reason=reason)
    up = Family("tinderbox_source_up", "1 where what is told here could be read from this source.")
    up.add(float(bool(rows)), source="nvidia-smi")
    return [up, info, busy, power, heat, clock, most, limit, *_processes(apps)]


def _processes(text: str | None) -> list[Family]:
    """Memory by the process's name: ids would make a new series of each start."""
    memory = Family("tinderbox_gpu_process_memory_bytes", "Memory that processes of this name have on the GPU.")
    count = Family("tinderbox_gpu_processes", "Processes that compute on the GPU.")
    lines = [line for line in (text or "").splitlines() if line.strip()]
    if not lines or not lines[0].startswith("pid,"):
        return []
    by_name: dict[str, float] = {}
    for line in lines[1:]:
        # A name may hold commas, which nvidia-smi does not quote.
        _, _, rest = line.partition(",")
        name, _, used = rest.rpartition(",")
        figure = _figure(used.strip())
        if figure is not None:
            by_name[name.strip()] = by_name.get(name.strip(), 0.0) + figure * _MIB
    for name, used_bytes in sorted(by_name.items()):
        memory.add(used_bytes, process=name)
    return [count.add(float(len(lines) - 1)), memory]


def _rows(text: str | None) -> list[dict[str, str]]:
    """The rows below the header, before which a container's banner may stand; none where it is not understood."""
    lines = [[cell.strip() for cell in line.split(",")] for line in (text or "").splitlines() if line.strip()]
    at = next((at for at, cells in enumerate(lines) if _names(cells) == _FIELDS), None)
    if at is None:
        return []
    return [dict(zip(_FIELDS, cells, strict=True)) for cells in lines[at + 1 :] if len(cells) == len(_FIELDS)]


def _names(cells: list[str]) -> tuple[str, ...]:
    bare = (re.sub(r"\s*\[.*\]$", "", cell) for cell in cells)
    same = {"clocks.current.sm": "clocks.sm", "clocks_throttle_reasons.active": "clocks_event_reasons.active"}
    return tuple(same.get(name, name) for name in bare)


def _figure(cell: str) -> float | None:
    """None for `[N/A]`, `Not Supported`, `[Unknown Error]` and all else that is no figure."""
    found = _NUMBER.fullmatch(cell)
    return float(found[1]) if found else None


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor
