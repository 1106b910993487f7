"""Why a gate failed: every rule of the catalog on telemetry of its kind, and on telemetry that comes near it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import get_args

import pytest

from modules.catalog import load_catalog
from modules.gating.explain import UNKNOWN, Case, explain, shortfall
from modules.gating.metrics import SeenFault
from modules.gating.series import Telemetry, statistic_of
from modules.hostside import gate_faults
from modules.spec.explanation import FaultKind
from modules.spec.gate import Threshold
from tests.unit.gate_simulation import measured

EXPLANATIONS = load_catalog().explanations
DECODE, PREFILL = "tg128@pp2048 c1", "pp2048 c1"
MARLIN = "(EngineCore pid=185) INFO 05-04 21:49:57 [mxfp4.py:93] [MXFP4 MoE] Auto-selected: Marlin"
CUTLASS = "(EngineCore pid=185) INFO 05-04 21:49:57 [mxfp4.py:93] [MXFP4 MoE] Auto-selected: CUTLASS"
NO_FP4 = "WARNING [marlin_utils_fp4.py:53] Your GPU does not have native support for FP4 computation"
BUILDING = "2026-06-07 13:28:14,724 - INFO - core.py:98 - flashinfer.jit: Building fused_moe_120"
SECONDS = 60


def scattered(middle: float, spread: float, seed: int = 6) -> list[float | None]:
    """A minute of samples around a value."""
    chance = random.Random(seed)
    return [middle + chance.uniform(-spread, spread) for _ in range(SECONDS)]


def healthy(**changed: Sequence[float | None]) -> dict[str, Sequence[float | None]]:
    """What a good Spark shows while it decodes (clock, power, temperature as recorded by others)."""
    return {
        "clock_mhz": scattered(2483, 13),
        "power_w": scattered(42, 2),
        "temperature_c": scattered(66, 4),
        "utilisation_percent": [96.0] * SECONDS,
        "memory_available_gib": scattered(12, 0.5),
        "swap_used_gib": [0.0] * SECONDS,
        "other_gpu_processes": [0.0] * SECONDS,
        "other_cpu_percent": scattered(3, 2),
        "requests_running": [1.0] * SECONDS,
        "requests_waiting": [0.0] * SECONDS,
        "kv_usage_percent": scattered(2, 1),
        "preemptions": [0.0] * SECONDS,
        **changed,
    }


def case(
    decode: Sequence[float] = (45.0, 45.1, 44.9), log: Sequence[str] = (CUTLASS,), **changed: Sequence[float | None]
) -> Case:
    """A failed gate of gpt-oss-120b at one stream."""
    return Case(
        model="gpt-oss-120b",
        streams=1,
        metrics={DECODE: measured(list(decode))},
        failed=(DECODE,),
        telemetry=healthy(**changed),
        log=log,
    )


def idle_then_busy(idle: float, busy: float) -> list[float]:
    return [idle] * 20 + [busy] * 40


def stuck(**changed: Sequence[float | None]) -> Case:
    low = healthy(clock_mhz=scattered(611, 40), power_w=scattered(17, 1.5), **changed)
    return replace(case((11.0, 11.1, 10.9)), telemetry=low)


COOLING = [2480.0] * 30 + [1900.0] * 30
FAULTS = [name for name, entry in EXPLANATIONS.items() if entry.fault is not None]


def faulty(kind: str) -> Case:
    return replace(case(), faults=(SeenFault(kind, "benchy", f"what was seen of {kind}"),))


# Name of the catalog's entry → what it must be found in.
KINDS: dict[str, Callable[[], Case]] = {
    **{name: partial(faulty, name) for name in FAULTS},
    "low-power-state": stuck,
    "low-power-at-full-clock": lambda: case((38.5, 38.4, 38.6), power_w=scattered(17, 2)),
    "thermal-limit": lambda: case(temperature_c=scattered(88, 1), clock_mhz=COOLING),
    "memory-pressure": lambda: case(memory_available_gib=scattered(1.6, 0.8)),
    "swapping": lambda: case(swap_used_gib=[0.1 + second / 60 for second in range(SECONDS)]),
    "kv-cache-full": lambda: case(kv_usage_percent=scattered(98, 1), requests_waiting=[4.0] * SECONDS),
    "strange-requests": lambda: case(requests_running=[3.0] * SECONDS),
    "other-gpu-processes": lambda: case(other_gpu_processes=[1.0] * SECONDS),
    "busy-processor": lambda: case(other_cpu_percent=scattered(80, 10)),
    "wrong-backend": lambda: case((31.6, 31.5, 31.7), log=[MARLIN]),
    "wrong-backend-by-its-speed": lambda: case((31.6, 31.5, 31.7), log=[]),
    "cold-kernel-cache": lambda: case((12.0, 58.9, 59.1)),
    "bound-out-of-reach": lambda: replace(case((1.1, 1.1, 1.1), other_cpu_percent=scattered(80, 10)), short_by=90.0),
    "compiling-while-measured": lambda: case(log=[CUTLASS, BUILDING], utilisation_percent=[0.0] * 25 + [96.0] * 35),
}

NEAR_MISSES: dict[str, Case] = {
    "idle clocks before the first request": case(
        clock_mhz=idle_then_busy(208, 2480), power_w=idle_then_busy(4, 42), utilisation_percent=idle_then_busy(0, 96)
    ),
    "a low clock at the power of a working GPU": case(clock_mhz=scattered(860, 20), power_w=scattered(60, 2)),
    "a capped clock, which costs no decode": case(clock_mhz=scattered(2150, 5), power_w=scattered(38, 2)),
    "low power with the GPU half idle": case(power_w=scattered(20, 2), utilisation_percent=[55.0] * SECONDS),
    "hot, and at full clock": case(temperature_c=scattered(88, 1)),
    "cool, with a clock that falls": case(clock_mhz=COOLING, temperature_c=scattered(70, 1)),
    "a clock that falls since the GPU went idle": case(
        temperature_c=scattered(88, 1),
        clock_mhz=list(reversed(idle_then_busy(208, 2480))),
        utilisation_percent=list(reversed(idle_then_busy(0, 96))),
    ),
    "little memory, and enough": case(memory_available_gib=scattered(4.2, 0.3)),
    "one second of little memory": case(memory_available_gib=[12.0] * 59 + [0.5]),
    "swap in use since long ago": case(swap_used_gib=[6.0] * SECONDS),
    "a full KV cache that nobody waits for": case(kv_usage_percent=scattered(98, 1)),
    "the gate's own requests": replace(case(requests_running=[8.0] * SECONDS), streams=8),
    "a figure that misses its bound as a stuck clock makes it": replace(case(), short_by=5.3),
    "another process for a moment": case(other_gpu_processes=[1.0] * 5 + [0.0] * 55),
    "another process on the GPU while it idles": case(
        other_gpu_processes=[1.0] * SECONDS, utilisation_percent=[3.0] * SECONDS
    ),
    "a processor with something to do": case(other_cpu_percent=scattered(25, 10)),
    "Marlin at full speed": case((57.1, 57.2, 57.0), log=[MARLIN, NO_FP4]),
    "slow decode of another model": replace(case((31.6, 31.5, 31.7), log=[MARLIN]), model="llama-70b"),
    "slower than any wrong backend": case((15.0, 15.1, 15.2), log=[CUTLASS]),
    "all runs slow alike": case((45.0, 45.0, 44.0)),
    "a slow run in the middle": case((59.0, 12.0, 58.9, 59.1)),
    "a slow first run among others that differ": case((12.0, 59.0, 30.0, 55.0)),
    "kernels built before the measurement": case(log=[CUTLASS, BUILDING]),
    "a GPU that idles between requests": case(
        utilisation_percent=[0.0] * 25 + [96.0] * 35, requests_running=[0.0] * 25 + [1.0] * 35
    ),
}


@pytest.mark.parametrize("name", EXPLANATIONS)
def test_each_rule_is_found_in_telemetry_of_its_kind(name: str) -> None:
    causes = explain(KINDS[name](), EXPLANATIONS)
    assert [cause.name for cause in causes] == [name]
    assert causes[0].evidence


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_what_only_comes_near_is_unknown(name: str) -> None:
    assert [cause.name for cause in explain(NEAR_MISSES[name], EXPLANATIONS)] == [UNKNOWN]


def test_every_fault_that_hosts_tell_has_its_entry() -> None:
    kinds = {value for name, value in vars(gate_faults).items() if name.isupper()}
    assert kinds == set(get_args(FaultKind)) == {EXPLANATIONS[name].fault for name in FAULTS} == set(FAULTS)


def test_a_cause_is_told_with_its_figures_and_its_remedy() -> None:
    text = explain(KINDS["low-power-state"](), EXPLANATIONS)[0].text()
    assert text.startswith("likely cause: low-power state (clock 6")
    assert "MHz; power 1" in text
    assert "unplug its power supply" in text


def test_the_first_run_of_a_time_is_slow_when_it_is_longer() -> None:
    long = Case("any", 1, {"ttfr@pp2048 c1": measured([900.0, 400.0, 401.0, 402.0])}, ("ttfr@pp2048 c1",))
    assert explain(long, EXPLANATIONS)[0].name == "cold-kernel-cache"
    short = replace(long, metrics={"ttfr@pp2048 c1": measured([300.0, 400.0, 401.0, 402.0])})
    assert explain(short, EXPLANATIONS)[0].name == UNKNOWN


def test_only_failed_figures_are_asked_for_their_first_run() -> None:
    slow_start = replace(case((12.0, 58.9, 59.1)), failed=(PREFILL,))
    assert explain(slow_start, EXPLANATIONS)[0].name == UNKNOWN


def test_two_causes_are_both_told_what_slows_all_first() -> None:
    both = stuck(requests_running=[3.0] * SECONDS)
    assert [cause.name for cause in explain(both, EXPLANATIONS)] == ["low-power-state", "strange-requests"]


def test_how_far_a_gate_was_missed_is_by_the_figure_that_comes_nearest() -> None:
    bounds = {DECODE: Threshold(min=4500), PREFILL: Threshold(min=20), "ttfr@pp2048 c1": Threshold(max=100)}
    metrics = {DECODE: measured([45.0] * 3), PREFILL: measured([4000.0] * 3), "ttfr@pp2048 c1": measured([250.0] * 3)}
    assert shortfall(bounds, metrics, (DECODE,)) == pytest.approx(100)
    assert shortfall(bounds, metrics, (DECODE, "ttfr@pp2048 c1")) == pytest.approx(2.5)
    # It failed by another bound, or has no figure.
    assert shortfall(bounds, metrics, (PREFILL, "tg32@pp512 c1")) is None


def test_one_kind_is_told_once() -> None:
    both = case(memory_available_gib=scattered(1.6, 0.8), swap_used_gib=[second / 60 for second in range(SECONDS)])
    assert [cause.cause for cause in explain(both, EXPLANATIONS)] == ["memory pressure"]


def test_unknown_tells_what_was_seen() -> None:
    cause = explain(case(), EXPLANATIONS)[0]
    assert any(line.startswith("clock 24") for line in cause.evidence)
    assert "unknown" in cause.text()


@pytest.mark.parametrize("telemetry", [{}, {"clock_mhz": [None] * 5, "utilisation_percent": [None] * 5}])
def test_without_telemetry_nothing_is_guessed(telemetry: Telemetry) -> None:
    cause = explain(replace(case(), telemetry=telemetry), EXPLANATIONS)[0]
    assert cause.name == UNKNOWN
    assert "nothing was sampled" in cause.meaning


def test_statistics() -> None:
    telemetry: Telemetry = {"power_w": [None, 10.0, 20.0, 30.0, None], "utilisation_percent": [0, 0, 90, 90, 90]}
    assert statistic_of(telemetry, "power_w", "median") == 20.0
    assert statistic_of(telemetry, "power_w", "min", busy=True) == 20.0
    assert statistic_of(telemetry, "power_w", "rise") == 20.0
    assert statistic_of(telemetry, "power_w", "fall") == pytest.approx(2 / 3)
    assert statistic_of(telemetry, "clock_mhz", "median") is None
