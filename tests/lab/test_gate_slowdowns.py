"""A server slowed by a known factor is judged right, and an unchanged one is not failed, by a real client's streams.

llama-benchy measures a fast server through a proxy that delays each token by a set time; which time changes from run to
run, so that whatever else this machine does meanwhile hits all of them alike. Its runs, in the order in which they were
made, are then dealt out to gates: each has a last good release of its own, and asks for more runs while it is in doubt.
"""

from __future__ import annotations

import itertools
import os
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from modules.facts.parse.llama_benchy import Metric, parse_benchy_json
from modules.gating import Verdict
from modules.gating.decision import decide
from modules.gating.metrics import Measurement
from modules.gating.references import References
from modules.hostside.gate_benchy import BOOK, environment, stage_book
from modules.spec.gate import BenchyWorkload, Gate, Threshold, Worse
from tests.lab.fake_engine import Behaviour, delaying, handler, served, write_tokenizer
from tests.lab.gated_fake import FakeHost, tools

pytestmark = pytest.mark.long

TOKENS = 32
TOKEN_S = 0.008
SLOWER = (0.05, 0.1, 0.3)
TRIALS, UNCHANGED = 20, 50
# One round of runs: of servers that become last good releases, of unchanged ones, and of slowed ones.
GOOD, SAME = "last good", "unchanged"
ROUND: tuple[str | float, ...] = (GOOD, SAME, GOOD, 0.05, GOOD, SAME, GOOD, 0.1, GOOD, SAME, GOOD, 0.3)
# The client is started so often, each time for so many rounds.
STARTS, ROUNDS = 10, 10
DECODE = f"tg{TOKENS}@pp64 c1"
GATE = Gate(
    workload=BenchyWorkload(pp=(64,), tg=(TOKENS,), runs=5, coherence=False),
    thresholds={DECODE: Threshold(last_good=Worse(fail=0.025))},
    most_runs=40,
)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Before all others, where that is allowed: they would be most of the noise. Threads and the client inherit it."""
    policy, parameter = os.sched_getscheduler(0), os.sched_getparam(0)
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, policy, parameter)


def decode(home: Path, url: str) -> list[float]:
    """What the client says of each run, in their order; nothing where it could not say it of every one."""
    report = home / "report.json"
    words = ["--base-url", f"{url}/v1", "--model", "fake", "--tokenizer", str(home / "tokenizer"), "--book-url", BOOK]
    words += ["--pp", "64", "--tg", str(TOKENS), "--runs", str(ROUNDS * len(ROUND)), "--exact-tg", "--no-cache"]
    words += ["--skip-coherence", "--latency-mode", "none", "--save-result", str(report), "--format", "json"]
    done = subprocess.run(
        [str(tools() / "llama-benchy"), *words],
        env=environment(home), capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (run,) = parse_benchy_json(report.read_text()).runs
    values = () if run.tg is None else run.tg.values
    return list(values) if len(values) == ROUNDS * len(ROUND) else []


@pytest.fixture(scope="module")
def speeds(tmp_path_factory: pytest.TempPathFactory) -> dict[str | float, list[float]]:
    """Decode of every run: of what becomes a last good release, of an unchanged server, and by slowdown."""
    home = tmp_path_factory.mktemp("slowdowns")
    stage_book(home, {"pp": [64], "depth": [0]}, seed=6)
    write_tokenizer(home / "tokenizer")
    found: dict[str | float, list[float]] = {kind: [] for kind in ROUND}
    with undisturbed(), served(handler(Behaviour(token_s=TOKEN_S))) as (engine, _):
        for _ in range(STARTS):
            numbers = itertools.count()

            def delay(_: int, numbers: Iterator[int] = numbers) -> float:
                # llama-benchy's own warm-up comes first.
                number = next(numbers)
                slower = ROUND[(number - 1) % len(ROUND)] if number else 0.0
                return TOKEN_S * slower if isinstance(slower, float) else 0.0

            with served(delaying(engine, delay, TOKENS)) as (url, _):
                values = decode(home, url)
            for kind, value in zip(itertools.cycle(ROUND), values, strict=False):
                found[kind].append(value)
    assert len(found[SAME]) >= STARTS * ROUNDS, "in many starts the client could not measure every run"
    return found


def metric(values: list[float]) -> Metric:
    return Metric(statistics.fmean(values), statistics.pstdev(values), tuple(values))


def gated(runs: Iterator[float], references: References) -> tuple[Verdict, Metric]:
    """One gate, on the runs that come next."""
    values: list[float] = []
    more = GATE.workload.runs
    while more:
        values += [next(runs) for _ in range(more)]
        found = decide(GATE, Measurement({DECODE: metric(values)}, {}), references)
        more = found.more_runs
    return found.judgement.verdict, metric(values)


def tally(runs: Iterator[float], good: Iterator[float], trials: int) -> tuple[Counter[Verdict], int]:
    """What becomes of so many servers, each held to a last good release of its own, and how many runs that took."""
    verdicts, taken = Counter[Verdict](), 0
    for _ in range(trials):
        _, last_good = gated(good, References())
        verdict, measured = gated(runs, References({DECODE: last_good}))
        verdicts[verdict] += 1
        taken += len(measured.values)
    return verdicts, taken


def test_slowed_servers_are_judged_right_and_unchanged_ones_are_not_failed(
    speeds: dict[str | float, list[float]],
    record_property: Callable[[str, object], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    spread = statistics.stdev(speeds[SAME]) / statistics.fmean(speeds[SAME])
    told = [f"run to run {100 * spread:.1f} %"]
    found: dict[str | float, Counter[Verdict]] = {}
    good = itertools.cycle(speeds[GOOD])
    kinds: dict[str | float, int] = {SAME: UNCHANGED, **dict.fromkeys(SLOWER, TRIALS)}
    for kind, trials in kinds.items():
        # Where the machine is so noisy that gates take more runs than there are, the first are dealt out once more.
        found[kind], taken = tally(itertools.cycle(speeds[kind]), good, trials)
        counts = " / ".join(str(found[kind][verdict]) for verdict in (Verdict.FAIL, Verdict.WARN, Verdict.PASS))
        told.append(f"{kind}: {counts} of {trials} fail / warn / pass, {taken / trials:.0f} runs each")
    record_property("counts", told)
    # Also where it passes: the counts are what it is for.
    with capsys.disabled():
        sys.stdout.write("\n" + "\n".join(told) + "\n")
    for slower in SLOWER:
        assert found[slower][Verdict.FAIL] >= 19, told
    assert found[SAME][Verdict.FAIL] <= UNCHANGED / 50, told


@pytest.mark.parametrize(("slower", "wanted"), [(0.0, {Verdict.PASS, Verdict.WARN}), (0.3, {Verdict.FAIL})])
def test_the_whole_program_says_the_same(
    tmp_path: Path, speeds: dict[str | float, list[float]], slower: float, wanted: set[Verdict]
) -> None:
    host = FakeHost(tmp_path, GATE, answers=None)
    with (
        undisturbed(),
        served(handler(Behaviour(token_s=TOKEN_S))) as (engine, _),
        served(delaying(engine, lambda _: TOKEN_S * slower, TOKENS)) as (url, _),
    ):
        found = host.gated(url, References({DECODE: metric(speeds[GOOD][-40:])}))
    assert found.decision.judgement.verdict in wanted, found.decision
