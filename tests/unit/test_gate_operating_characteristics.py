"""How often gates err, shown on servers whose true speed is known. The figures stand in docs/developing/gates.md."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from modules.gating import Verdict
from modules.spec.gate import BenchyWorkload, Gate, Threshold, Worse
from tests.unit.gate_simulation import (
    DECODE,
    SCENARIOS,
    SLOWER,
    TRIALS,
    Noise,
    Scenario,
    Server,
    gated,
    row,
    tallies,
    trials,
)

DOCS = Path(__file__).resolve().parents[2] / "docs" / "developing" / "gates.md"


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: f"{scenario.kind} {scenario.noise.runs:g}")
def test_slower_servers_are_told_from_unchanged_ones(scenario: Scenario) -> None:
    found = tallies(scenario)
    unchanged, *slower = found
    assert unchanged.failed * 50 <= TRIALS, "an unchanged server fails more than once in 50"
    for tally, by in zip(slower, SLOWER[1:], strict=True):
        right = tally.failed if scenario.is_slower(by) else TRIALS - tally.failed
        assert right * 20 >= TRIALS * 19, f"slower by {by:.0%}: judged right {right} times of {TRIALS}"
    assert row(scenario, found) in DOCS.read_text(encoding="utf-8"), "the docs have other figures"


def fixed(noise: float, speed: float, seed: int) -> list[Verdict]:
    """Verdicts on a server of a true speed, against fixed bounds: fail below 50, warn below 56."""
    gate = Gate(workload=BenchyWorkload(runs=5), thresholds={DECODE: Threshold(min=50, warn_min=56)}, most_runs=40)
    chance = random.Random(seed)
    return [gated(gate, Server(speed, Noise(noise), chance))[0] for _ in range(TRIALS)]


@pytest.mark.parametrize(
    ("speed", "wanted"), [(59.2, Verdict.PASS), (53.0, Verdict.WARN), (47.0, Verdict.FAIL), (31.6, Verdict.FAIL)]
)
@pytest.mark.parametrize("noise", [0.002, 0.05])
def test_fixed_bounds_are_kept_through_the_spread(noise: float, speed: float, wanted: Verdict) -> None:
    found = fixed(noise, speed, seed=6)
    assert found.count(wanted) * 20 >= TRIALS * 19


def test_a_server_upon_its_bound_seldom_fails_since_nothing_shows_that_it_is_below() -> None:
    assert fixed(0.02, 50.0, seed=6).count(Verdict.FAIL) * 50 <= TRIALS


def test_many_figures_in_one_gate_share_its_false_alarms() -> None:
    workload = BenchyWorkload(pp=(512, 2048, 8192), tg=(32, 128), runs=5)
    bounds = {name: Threshold(last_good=Worse(fail=0.025)) for name in workload.metrics() if name.startswith("tg")}
    gate = Gate(workload=workload, thresholds=bounds, most_runs=40)
    unchanged = trials(gate, 0.0, Noise(0.01), seed=6)
    assert unchanged.failed * 50 <= TRIALS
    assert trials(gate, 0.05, Noise(0.01), seed=6).failed * 20 >= TRIALS * 19
