"""What `load_ways.py` found: how fast each way brings a checkpoint to the device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median

from pydantic import BaseModel, ConfigDict


class WayFigures(BaseModel):
    """Bytes per second of each round; `cached`: share that was in memory when a cold round began."""

    model_config = ConfigDict(frozen=True)

    cold: tuple[float, ...] = ()
    warm: tuple[float, ...] = ()
    cached: tuple[float, ...] = ()
    error: str | None = None

    @property
    def measured(self) -> bool:
        """Whether there are figures, of rounds that began with an empty page cache."""
        return (
            self.error is None and bool(self.cold) and bool(self.warm) and max(self.cached, default=0.0) < _STILL_CACHED
        )

    @property
    def cold_rate(self) -> float:
        """The median of its rounds."""
        return median(self.cold)

    @property
    def warm_rate(self) -> float:
        """The median of its rounds."""
        return median(self.warm)


# Above this, what was called cold came from memory in good part.
_STILL_CACHED = 0.05


class DeviceWays(BaseModel):
    """`device`: its name. `bytes`: of the files that were loaded. `versions`: package → version in the image."""

    model_config = ConfigDict(frozen=True)

    device: str
    bytes: int
    files: int
    versions: Mapping[str, str]
    ways: Mapping[str, WayFigures]


@dataclass(frozen=True)
class Setting:
    """How an engine is told to take a way: `load_format` of its flags, and variables of its environment."""

    load_format: str
    environment: Mapping[str, str] = field(default_factory=dict)


# What a variable counts as where it is not set; the others' absence is no value of theirs.
UNSET = {"VLLM_FASTSAFETENSORS_NOGDS": "0"}
# The ways of `load_ways.py` that vLLM can be told to take; the others say what a setting would be worth.
SETTINGS: Mapping[str, Setting] = {
    "safetensors-copy": Setting("safetensors"),
    "fastsafetensors": Setting("fastsafetensors", {"VLLM_FASTSAFETENSORS_NOGDS": "1"}),
    "fastsafetensors-gds": Setting("fastsafetensors", {"VLLM_FASTSAFETENSORS_NOGDS": "0"}),
    "fastsafetensors-buffered": Setting(
        "fastsafetensors", {"VLLM_FASTSAFETENSORS_NOGDS": "1", "FASTSAFETENSORS_ODIRECT": "0"}
    ),
    "fastsafetensors-unified": Setting(
        "fastsafetensors", {"VLLM_FASTSAFETENSORS_NOGDS": "1", "FASTSAFETENSORS_UNIFIED_MEM": "1"}
    ),
    "fastsafetensors-unified-mapped": Setting(
        "fastsafetensors",
        {
            "VLLM_FASTSAFETENSORS_NOGDS": "1",
            "FASTSAFETENSORS_UNIFIED_MEM": "1",
            "FASTSAFETENSORS_DMA_THREADS": "0",
            "FASTSAFETENSORS_ODIRECT": "0",
        },
    ),
}
