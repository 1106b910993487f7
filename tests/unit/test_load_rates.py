"""How long a load takes by what was measured, who is warned, and which way of loading is recommended."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from modules.catalog import load_catalog
from modules.loading import DeviceWays, Rates, Reading, WayFigures, load_seconds, recommend, shown_ways, slow_load
from modules.loading.recommend import taken_now
from modules.spec.engine import FlagValue

GB = 10**9
FAST: dict[str, FlagValue] = {"load-format": "fastsafetensors"}
NOGDS = {"VLLM_FASTSAFETENSORS_NOGDS": "1"}
H200 = Path(__file__).parents[1] / "samples" / "load-ways-h200.json"


def rates(cold: float = 2.0, *, mapped: float = 1.0, direct: float | None = 5.0, size: float = 66.4) -> Rates:
    return Rates(
        disk={"source": "/dev/nvme0n1p2", "type": "ext4"},
        bytes=int(size * GB),
        sampled=4 * GB,
        direct=None if direct is None else direct * GB,
        reading=Reading(cold=cold * GB, warm=10 * GB),
        mapping=Reading(cold=mapped * GB, warm=8 * GB),
    )


def test_the_way_in_which_an_engine_reads_decides() -> None:
    assert load_seconds(rates(2.0, mapped=1.0), FAST) == pytest.approx(33.2)
    assert load_seconds(rates(2.0, mapped=1.0), {"no-mmap": True}) == pytest.approx(33.2)
    assert load_seconds(rates(2.0, mapped=1.0), {}) == pytest.approx(66.4)


def test_the_published_bad_case_is_warned_of_and_a_sparks_own_disk_is_not() -> None:
    limit = load_catalog().models["gpt-oss-120b"].load_seconds

    bad = slow_load(rates(0.18, direct=0.18), FAST, limit)

    assert bad is not None
    assert "369 s" in bad
    assert "/dev/nvme0n1p2 at 0.18 GB/s" in bad
    assert "the disk itself is that slow" in bad.lower()
    assert slow_load(rates(0.9, size=65.3), FAST, limit) is None
    assert slow_load(rates(0.18), FAST, None) is None


def test_a_slow_way_on_a_fast_disk_is_told_from_a_slow_disk() -> None:
    found = slow_load(rates(2.0, mapped=0.18, direct=5.0), {}, 145)

    assert found is not None
    assert "it is the way of reading that is slow" in found
    assert "deploys/load_ways.py" in found


def test_what_was_measured_on_an_h200_leaves_the_engine_as_it_is() -> None:
    found = DeviceWays.model_validate(json.loads(H200.read_text()))

    advice = recommend(found, FAST, NOGDS)

    assert advice is not None
    assert (advice.way, advice.change) == ("fastsafetensors", False)
    assert "2.30 GB/s from the disk, 1.14 from memory" in advice.reason
    assert "  fastsafetensors-buffered: 1.89 / 24.37" in shown_ways(found)


def ways(**figures: tuple[float, float]) -> DeviceWays:
    """Name (with underscores) → GB/s cold and warm."""
    found = {
        name.replace("_", "-"): WayFigures(cold=(cold * GB,), warm=(warm * GB,), cached=(0.0,))
        for name, (cold, warm) in figures.items()
    }
    return DeviceWays(device="NVIDIA GB10", bytes=8 * GB, files=2, versions={}, ways=found)


def test_fastsafetensors_that_is_no_faster_cold_and_slower_warm_is_advised_against() -> None:
    advice = recommend(ways(safetensors_copy=(1.0, 9.0), fastsafetensors=(1.02, 1.1)), FAST, NOGDS)

    assert advice is not None
    assert (advice.way, advice.change, advice.setting.load_format) == ("safetensors-copy", True, "safetensors")
    assert "now fastsafetensors: 1.02 GB/s from the disk, 1.10 from memory" in advice.reason


def test_what_comes_fastest_from_the_disk_wins_over_what_comes_fastest_from_memory() -> None:
    advice = recommend(ways(safetensors_copy=(1.0, 9.0), fastsafetensors=(2.5, 1.1)), {}, {})

    assert advice is not None
    assert (advice.way, advice.change) == ("fastsafetensors", True)
    assert advice.setting.environment == NOGDS


def test_a_way_that_failed_or_found_the_page_cache_full_is_not_recommended() -> None:
    found = ways(safetensors_copy=(1.0, 9.0))
    cached = WayFigures(cold=(9e9,), warm=(9e9,), cached=(1.0,))
    broken = WayFigures(error="GDS is not supported in this platform but nogds is False")
    found = found.model_copy(update={"ways": {**found.ways, "fastsafetensors": cached, "fastsafetensors-gds": broken}})

    advice = recommend(found, {}, {})

    assert advice is not None
    assert advice.way == "safetensors-copy"
    said = "\n".join(shown_ways(found))
    assert "fastsafetensors: the page cache could not be emptied" in said
    assert "GDS is not supported" in said
    assert recommend(found.model_copy(update={"ways": {"fastsafetensors": cached}}), {}, {}) is None


@pytest.mark.parametrize(
    ("flags", "environment", "way"),
    [
        ({}, {}, "safetensors-copy"),
        ({"load-format": "safetensors"}, {}, "safetensors-copy"),
        (FAST, {}, "fastsafetensors-gds"),
        (FAST, NOGDS, "fastsafetensors"),
        (FAST, {**NOGDS, "FASTSAFETENSORS_ODIRECT": "0"}, "fastsafetensors-buffered"),
        ({"load-format": "dummy"}, {}, None),
    ],
)
def test_the_way_that_an_engine_takes_now(
    flags: dict[str, FlagValue], environment: dict[str, str], way: str | None
) -> None:
    assert taken_now(flags, environment) == way
