"""`nvidia-smi --query-…=… --format=csv`, with its header."""

from __future__ import annotations

import re
from dataclasses import dataclass

from modules.facts.parse.errors import ParseError
from modules.facts.parse.text import integer, lines_of, number

_PROGRAM = "nvidia-smi"
_ALIASES = {
    "clocks.sm": "clocks.current.sm",
    "clocks_throttle_reasons.active": "clocks_event_reasons.active",
    "used_memory": "used_gpu_memory",
}
# nvml.h, nvmlClocksEventReason*
_REASONS = {
    0x1: "idle",
    0x2: "applications clocks setting",
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
    0x100: "display clock setting",
}
_REFUSALS = (
    "NVIDIA-SMI has failed",
    "Failed to initialize NVML",
    "No devices were found",
    "is not a valid field to query",
    "couldn't communicate with the NVIDIA driver",
)


@dataclass(frozen=True)
class Gpu:
    """One GPU. Clocks in MHz, power in W, temperature in °C, utilisation in percent; None where the GPU does not tell.

    `reasons`: why clocks are held back. On GB10 all can be absent while a counter shows hours of power capping: their
    absence proves nothing.
    """

    name: str
    driver: str
    pstate: str | None = None
    sm_mhz: float | None = None
    max_sm_mhz: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    utilization_pct: float | None = None
    reasons: tuple[str, ...] = ()

    @property
    def driver_major(self) -> int:
        """580 of 580.159.03."""
        return int(self.driver.split(".")[0])


@dataclass(frozen=True)
class ComputeApp:
    """A process with a compute context. `memory_mib` is None where the driver does not tell."""

    pid: int
    name: str
    memory_mib: int | None


def parse_gpus(text: str) -> tuple[Gpu, ...]:
    """GPUs of a `--query-gpu` that asks at least for `name` and `driver_version`."""
    return tuple(_gpu(row, at) for at, row in _rows(text, needed=("name", "driver_version"), loose="name"))


def parse_compute_apps(text: str) -> tuple[ComputeApp, ...]:
    """Processes of `--query-compute-apps=pid,process_name,used_gpu_memory`; none when only the header stands."""
    found = []
    for at, row in _rows(text, needed=("pid", "process_name", "used_gpu_memory"), loose="process_name"):
        memory = _available(row["used_gpu_memory"], at)
        mib = None if memory is None else integer(_PROGRAM, memory.removesuffix(" MiB"), line=at)
        found.append(ComputeApp(integer(_PROGRAM, row["pid"], line=at), row["process_name"], mib))
    return tuple(found)


def _rows(text: str, needed: tuple[str, ...], loose: str) -> list[tuple[int, dict[str, str]]]:
    names: tuple[str, ...] | None = None
    rows: list[tuple[int, dict[str, str]]] = []
    for at, line in enumerate(lines_of(text), start=1):
        if not line.strip():
            continue
        if any(refusal in line for refusal in _REFUSALS):
            raise ParseError(_PROGRAM, "it could not answer", line=at, text=line)
        fields = [field.strip() for field in line.split(",")]
        if names is None:
            found = tuple(_column(field) for field in fields)
            if set(needed) <= set(found):  # a container's banner may stand before the header
                names = found
            continue
        rows.append((at, _cells(names, fields, loose, line, at)))
    if names is None:
        raise ParseError(_PROGRAM, f"no CSV header with {', '.join(needed)}", text=text)
    return rows


def _column(field: str) -> str:
    name = re.sub(r"\s*\[.*\]$", "", field)
    return _ALIASES.get(name, name)


def _cells(names: tuple[str, ...], fields: list[str], loose: str, line: str, at: int) -> dict[str, str]:
    surplus = len(fields) - len(names)
    if surplus < 0:
        raise ParseError(_PROGRAM, f"expected {len(names)} fields, got {len(fields)}", line=at, text=line)
    where = names.index(loose)  # a process name may hold commas, which nvidia-smi does not quote
    joined = ", ".join(fields[where : where + surplus + 1])
    return dict(zip(names, [*fields[:where], joined, *fields[where + surplus + 1 :]], strict=True))


def _available(value: str, at: int) -> str | None:
    bare = value.strip("[]")
    if bare in {"N/A", "Not Supported", "Insufficient Permissions"}:
        return None
    if value.startswith("["):
        raise ParseError(_PROGRAM, "the GPU does not answer", line=at, text=value)
    return value


def _gpu(row: dict[str, str], at: int) -> Gpu:
    def measured(column: str, unit: str = "") -> float | None:
        value = _available(row.get(column, "N/A"), at)
        return None if value is None else number(_PROGRAM, value.removesuffix(unit), line=at)

    if not re.fullmatch(r"\d+(\.\d+)+", row["driver_version"]):
        raise ParseError(_PROGRAM, "expected a driver version", line=at, text=row["driver_version"])
    return Gpu(
        name=row["name"],
        driver=row["driver_version"],
        pstate=_available(row.get("pstate", "N/A"), at),
        sm_mhz=measured("clocks.current.sm", " MHz"),
        max_sm_mhz=measured("clocks.max.sm", " MHz"),
        power_w=measured("power.draw", " W"),
        temperature_c=measured("temperature.gpu"),
        utilization_pct=measured("utilization.gpu", " %"),
        reasons=_reasons(_available(row.get("clocks_event_reasons.active", "N/A"), at), at),
    )


def _reasons(mask: str | None, at: int) -> tuple[str, ...]:
    if mask is None:
        return ()
    if not re.fullmatch(r"0x[0-9a-fA-F]+", mask):
        raise ParseError(_PROGRAM, "expected a mask of clock event reasons", line=at, text=mask)
    return tuple(name for bit, name in _REASONS.items() if int(mask, 16) & bit)
