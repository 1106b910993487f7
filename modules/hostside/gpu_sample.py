"""What the GPU was doing while something was measured: slow at low clocks is another fault than slow at full ones."""

from __future__ import annotations

import math
import subprocess

FIELDS = ("clock_mhz", "power_w", "temperature_c", "utilisation_percent")
_QUERY = "clocks.sm,power.draw,temperature.gpu,utilization.gpu"


def _query(fields: str) -> list[str] | None:
    command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.splitlines()
    return [cell.strip() for cell in lines[-1].split(",")] if done.returncode == 0 and lines else None


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:  # "[N/A]", "Not Supported"
        return None
    return value if math.isfinite(value) else None


def gpu() -> dict[str, str] | None:
    """Name, driver and compute capability, or None on a host that has no GPU to ask."""
    cells = _query("name,driver_version,compute_cap")
    return dict(zip(("name", "driver", "compute_cap"), cells, strict=True)) if cells and len(cells) == 3 else None


def sample() -> dict[str, float | None] | None:
    """One sample, or None."""
    cells = _query(_QUERY)
    return dict(zip(FIELDS, map(_number, cells), strict=True)) if cells and len(cells) == len(FIELDS) else None
