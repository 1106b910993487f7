"""Servers whose true speed is known, measured as a gate measures: runs that scatter, more of them while in doubt."""

from __future__ import annotations

import random
import statistics
import sys
from collections import Counter
from dataclasses import dataclass

from modules.facts.parse.llama_benchy import Metric
from modules.gating import Verdict
from modules.gating.decision import NOTHING, decide
from modules.gating.metrics import Measurement
from modules.gating.references import References
from modules.spec.gate import BenchyWorkload, Gate, Threshold, Worse

DECODE = "tg128@pp2048 c1"


@dataclass(frozen=True)
class Noise:
    """`runs`: coefficient of variation from run to run. `starts`: from one start of the server to the next.

    `stalls`: how many runs of a hundred are a third slower, for a reason that is not the server's.
    """

    runs: float
    starts: float = 0.0
    stalls: float = 0.0


def relative_gate(fail: float, *, runs: int = 5, most_runs: int = 40) -> Gate:
    return Gate(
        workload=BenchyWorkload(runs=runs),
        thresholds={DECODE: Threshold(last_good=Worse(fail=fail))},
        most_runs=most_runs,
    )


@dataclass(frozen=True)
class Scenario:
    """A kind of figure, the gate that suits it, and how it scatters."""

    kind: str
    noise: Noise
    fail: float
    gate: Gate

    def is_slower(self, slower: float) -> bool:
        """Whether a server whose every token takes `slower` longer has crossed the gate's bound."""
        return slower / (1 + slower) > self.fail


def scenario(kind: str, noise: Noise, fail: float, *, runs: int = 5, most_runs: int = 40) -> Scenario:
    return Scenario(kind, noise, fail, relative_gate(fail, runs=runs, most_runs=most_runs))


SLOWER = (0.0, 0.05, 0.1, 0.3)
SCENARIOS = (
    scenario("decode", Noise(runs=0.002, starts=0.002), 0.025),
    scenario("decode", Noise(runs=0.005, starts=0.005), 0.025),
    scenario("decode", Noise(runs=0.01, starts=0.005), 0.025),
    scenario("decode, 1 run of 100 stalls", Noise(runs=0.005, starts=0.003, stalls=1), 0.025),
    scenario("prefill", Noise(runs=0.02, starts=0.005), 0.15),
    scenario("prefill", Noise(runs=0.05, starts=0.01), 0.15),
    scenario("prefill", Noise(runs=0.07, starts=0.01), 0.15),
    scenario("decode on the lab's CPU", Noise(runs=0.05), 0.025, runs=10, most_runs=80),
)
TRIALS = 100


@dataclass
class Tally:
    """What became of the trials of one kind. `runs`: of the servers under test, in all."""

    verdicts: Counter[Verdict]
    runs: int

    @property
    def failed(self) -> int:
        return self.verdicts[Verdict.FAIL]

    def text(self) -> str:
        """`fail / warn / pass, mean number of runs`, as the docs show it."""
        counts = " / ".join(str(self.verdicts[verdict]) for verdict in (Verdict.FAIL, Verdict.WARN, Verdict.PASS))
        return f"{counts}, {self.runs / self.verdicts.total():.0f}"


class Server:
    """A server that decodes at `speed` tok/s, on the average over all its starts."""

    def __init__(self, speed: float, noise: Noise, chance: random.Random) -> None:
        self._noise, self._chance = noise, chance
        self._speed = speed * chance.gauss(1, noise.starts)

    def run(self) -> float:
        stalled = 1.5 if self._chance.random() < self._noise.stalls / 100 else 1.0
        return max(1e-3, self._speed * self._chance.gauss(1, self._noise.runs)) / stalled


def measured(values: list[float]) -> Metric:
    return Metric(statistics.fmean(values), statistics.pstdev(values), tuple(values))


def gated(gate: Gate, server: Server, references: References = NOTHING) -> tuple[Verdict, dict[str, Metric]]:
    """The whole of a gate: measure, and measure more as long as it asks for more."""
    values: dict[str, list[float]] = {name: [] for name in gate.thresholds}
    runs = gate.workload.runs
    while True:
        for taken in values.values():
            taken += [server.run() for _ in range(runs)]
        metrics = {name: measured(taken) for name, taken in values.items()}
        found = decide(gate, Measurement(metrics, {}), references)
        if found.settled:
            return found.judgement.verdict, metrics
        runs = found.more_runs
        assert all(len(taken) + runs <= gate.run_bound for taken in values.values())


def trials(gate: Gate, slower: float, noise: Noise, seed: int) -> Tally:
    """First releases become last good ones; servers whose every token takes `slower` longer are then held to them."""
    chance = random.Random(seed)
    tally = Tally(Counter(), 0)
    for _ in range(TRIALS):
        _, good = gated(gate, Server(59.0, noise, chance))
        verdict, metrics = gated(gate, Server(59.0 / (1 + slower), noise, chance), References(good))
        tally.verdicts[verdict] += 1
        tally.runs += min(len(metric.values) for metric in metrics.values())
    return tally


def tallies(scenario: Scenario) -> list[Tally]:
    """Of every slowdown."""
    return [trials(scenario.gate, slower, scenario.noise, seed=6) for slower in SLOWER]


def row(scenario: Scenario, found: list[Tally]) -> str:
    """The scenario's row in docs/developing/gates.md."""
    noise = f"{scenario.noise.runs * 100:g} % / {scenario.noise.starts * 100:g} %"
    cells = [scenario.kind, noise, f"{scenario.fail}", f"{scenario.gate.workload.runs} to {scenario.gate.run_bound}"]
    return "| " + " | ".join([*cells, *(tally.text() for tally in found)]) + " |"


if __name__ == "__main__":
    for one in SCENARIOS:
        sys.stdout.write(row(one, tallies(one)) + "\n")
