"""What `probe_load.py` found on a host, and whether a model can be loaded from there in good time."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict

from modules.spec.engine import FlagValue

_GB = 1e9
# Of vLLM: those that read into a buffer of their own. What is not named here maps the files.
_READING_FORMATS = {"fastsafetensors", "runai_streamer"}


class Reading(BaseModel):
    """Bytes per second with an empty and with a full page cache."""

    model_config = ConfigDict(frozen=True)

    cold: float
    warm: float


class Rates(BaseModel):
    """`disk`: what lies under the files. `bytes`: of all weight files; `sampled`: of those that were read.

    `direct`: bytes per second of the disk itself, past the page cache; None where its filesystem does not allow that,
    and then an empty page cache may not have been empty.
    """

    model_config = ConfigDict(frozen=True)

    disk: Mapping[str, str]
    bytes: int
    sampled: int
    direct: float | None
    reading: Reading
    mapping: Reading


def reading_of(rates: Rates, flags: Mapping[str, FlagValue]) -> tuple[str, Reading]:
    """In which way an engine with these flags reads files, and how fast that was."""
    if flags.get("load-format") in _READING_FORMATS or flags.get("no-mmap") is True:
        return "read", rates.reading
    return "mapped", rates.mapping


def load_seconds(rates: Rates, flags: Mapping[str, FlagValue]) -> float:
    """What the engine needs at least to read all weights from the disk."""
    return rates.bytes / max(reading_of(rates, flags)[1].cold, 1.0)


def slow_load(rates: Rates, flags: Mapping[str, FlagValue], limit_s: float | None) -> str | None:
    """What to tell where a load takes longer than the catalog's limit; None where it does not, or there is none."""
    seconds = load_seconds(rates, flags)
    if limit_s is None or seconds <= limit_s:
        return None
    way, found = reading_of(rates, flags)
    device = rates.disk.get("source", "the disk")
    said = (
        f"the weights will take {seconds:.0f} s or more to load, the catalog's limit is {limit_s:.0f} s: "
        f"{rates.bytes / _GB:.1f} GB, {way} from {device} at {found.cold / _GB:.2f} GB/s."
    )
    if rates.direct is not None and rates.bytes / max(rates.direct, 1.0) <= limit_s:
        return (
            f"{said} The disk itself gives {rates.direct / _GB:.2f} GB/s: it is the way of reading that is slow; "
            "deploys/load_ways.py measures the others"
        )
    return f"{said} The disk itself is that slow: move `weights.home` to the NVMe disk (findmnt -T, lsblk, nvme list)"
