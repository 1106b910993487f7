"""What a host's figures show that matters, in words that signatures can be written for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from modules.facts.parse.errors import ParseError
from modules.facts.parse.nvidia_smi import Gpu, parse_gpus
from modules.hostside.driver_versions import module_in

# Units stuck in a low power state show 500 to 850 MHz and 15 to 30 W at 94 to 96 % use; healthy ones 2400 MHz and 40 W.
_BUSY_PCT, _LOW_MHZ, _LOW_W = 90, 900, 30
_SHORT_KB = 2 * 1024 * 1024
_SWAP_LEFT = 0.05
_MANY_RESTARTS = 2
_FIELD = re.compile(r"(\w+(?:\(\w+\))?):\s+(\d+)")


@dataclass(frozen=True)
class Observations:
    """`trouble`: what could not be looked at."""

    lines: tuple[str, ...]
    trouble: str | None


def observations(
    files: Mapping[str, str | None], gpu: Mapping[str, Any] | None, unit: Mapping[str, str]
) -> Observations:
    """From the texts of files in /proc, `nvidia-smi`'s answers, and the unit's properties."""
    memory = {name: int(value) for name, value in _FIELD.findall(files.get("/proc/meminfo") or "")}
    samples, trouble = _samples(gpu)
    lines = [*_memory(memory), *_clocks(samples), *_driver(files.get("/proc/driver/nvidia/version") or "", samples)]
    restarts = unit.get("NRestarts", "0")
    if restarts.isdigit() and int(restarts) >= _MANY_RESTARTS:
        lines.append(f"the unit was restarted {restarts} times by systemd")
    return Observations(tuple(lines), trouble)


def _memory(found: Mapping[str, int]) -> Iterator[str]:
    available, swap, swap_free = found.get("MemAvailable"), found.get("SwapTotal", 0), found.get("SwapFree", 0)
    if available is not None and available < _SHORT_KB:
        yield f"memory is short: {available / 2**20:.1f} of {found.get('MemTotal', 0) / 2**20:.1f} GiB available"
    if swap and swap_free < swap * _SWAP_LEFT:
        yield f"swap is full: {swap_free / 2**20:.1f} of {swap / 2**20:.1f} GiB free"
    if found.get("CmaFree", 0) > found.get("CmaTotal", 0):
        yield f"CmaFree is above CmaTotal: {found['CmaFree']} kB of {found.get('CmaTotal', 0)} kB"


def _clocks(samples: tuple[Gpu, ...]) -> Iterator[str]:
    """Use alone says nothing (96 % occurs at 42 W and at 100 W): clock and power must both be low, in every sample."""
    if samples and all(_held_back(gpu) for gpu in samples):
        first = samples[0]
        yield (
            f"GPU busy at a low clock: {first.utilization_pct:.0f} % busy, {first.sm_mhz:.0f} MHz, "
            f"{'unknown power' if first.power_w is None else f'{first.power_w:.1f} W'}"
        )


def _held_back(gpu: Gpu) -> bool:
    busy = gpu.utilization_pct is not None and gpu.utilization_pct >= _BUSY_PCT
    slow = gpu.sm_mhz is not None and gpu.sm_mhz < _LOW_MHZ
    return busy and slow and (gpu.power_w is None or gpu.power_w < _LOW_W)


def _driver(version: str, samples: tuple[Gpu, ...]) -> Iterator[str]:
    module = module_in(version)
    library = samples[0].driver if samples else None
    if library is not None:
        yield f"driver {library}"
    elif module is not None:
        yield f"driver {module}"
    if module is not None and library is not None and module != library:
        yield f"driver versions differ: the kernel's module is {module}, the library {library}"


def _samples(gpu: Mapping[str, Any] | None) -> tuple[tuple[Gpu, ...], str | None]:
    if gpu is None:
        return (), "nvidia-smi is not installed"
    found: list[Gpu] = []
    for text in gpu["samples"]:
        try:
            found.extend(parse_gpus(text)[:1])
        except ParseError as error:
            return (), str(error)
    return tuple(found), None
