"""Memory and pressure of the host, for Prometheus."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.atomic import read_json
    from modules.hostside.exposition import COUNTER, Family
else:
    from atomic import read_json
    from exposition import COUNTER, Family

_SETTINGS = Path("/etc/tinderbox")
_SIZES = {
    "MemTotal": ("tinderbox_memory_total_bytes", "Memory of the machine, which CPU and GPU share."),
    "MemAvailable": ("tinderbox_memory_available_bytes", "What a new program can take without swapping."),
    "SwapTotal": ("tinderbox_swap_total_bytes", "Swap of the machine."),
    "SwapFree": ("tinderbox_swap_free_bytes", "Swap that nothing is in."),
}
_PRESSURE = re.compile(r"^(some|full) .*\btotal=(\d+)$", re.MULTILINE)


def host_families(proc: Path = Path("/proc"), settings: Path = _SETTINGS) -> list[Family]:
    """`settings`: where the services' memory files lie, whose reserve is told."""
    up = Family("tinderbox_source_up", "1 where what is told here could be read from this source.")
    meminfo = dict(re.findall(r"^(\w+):\s+(\d+) kB$", _read(proc / "meminfo"), re.MULTILINE))
    sizes = [
        Family(name, meaning).add(float(meminfo[field]) * 1024)
        for field, (name, meaning) in _SIZES.items()
        if field in meminfo
    ]
    up.add(float("MemAvailable" in meminfo), source="meminfo")
    pressure = Family(
        "tinderbox_pressure_seconds_total", "Time in which some or all tasks waited for a resource.", COUNTER
    )
    for resource in ("cpu", "io", "memory"):
        for kind, total in _PRESSURE.findall(_read(proc / "pressure" / resource)):
            pressure.add(int(total) / 1e6, resource=resource, kind=kind)
    up.add(float(bool(pressure.samples)), source="pressure")
    reserve = Family(
        "tinderbox_memory_reserve_bytes",
        "What the memory plans leave to the system; less available is less than planned.",
    )
    return [up, *sizes, pressure, reserve.add(_reserve(settings))]


def _reserve(settings: Path) -> float | None:
    found = (read_json(path) or {} for path in sorted(settings.glob("*.memory.json")))
    reserves = [float(one["reserve"]) for one in found if isinstance(one.get("reserve"), int)]  # type: ignore[arg-type]
    return max(reserves, default=None)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
