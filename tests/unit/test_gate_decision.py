"""Thresholds, runs and references → verdict, reasons, and the wish for more runs."""

from __future__ import annotations

import math

import pytest

from modules.catalog import load_catalog
from modules.facts.parse.llama_benchy import Metric
from modules.gating import Verdict
from modules.gating.decision import Decision, decide, risks_of
from modules.gating.direction import lower_is_better
from modules.gating.metrics import Measurement
from modules.gating.pooling import pooled
from modules.gating.references import References
from modules.gating.significance import Estimate, Spread, otherwise, worse_than
from modules.gating.student import tail
from modules.spec.gate import BenchyWorkload, Gate, Threshold, Worse
from tests.unit.gate_simulation import measured

CATALOG = load_catalog()
DECODE, TIME = "tg128@pp2048 c1", "ttfr@pp2048 c1"


def gate(threshold: Threshold, metric: str = DECODE, *, most_runs: int = 12) -> Gate:
    return Gate(workload=BenchyWorkload(runs=3), thresholds={metric: threshold}, most_runs=most_runs)


def decided(
    threshold: Threshold, *values: float, good: list[float] | None = None, others: tuple[float, ...] = ()
) -> Decision:
    references = References({DECODE: measured(good)} if good else {}, {DECODE: others})
    return decide(gate(threshold), Measurement({DECODE: measured(list(values))}, {}), references)


# Tables of Student's t: one-sided probability, degrees of freedom, quantile.
@pytest.mark.parametrize(
    ("probability", "freedom", "value"),
    [(0.05, 1, 6.3138), (0.025, 2, 4.3027), (0.01, 3, 4.5407), (0.001, 30, 3.3852), (0.05, 120, 1.6577)],
)
def test_tail_agrees_with_the_tables(probability: float, freedom: float, value: float) -> None:
    assert tail(value, freedom) == pytest.approx(probability, rel=1e-4)


def test_tail_of_nothing_is_a_half() -> None:
    assert tail(0.0, 4) == pytest.approx(0.5)


def test_spreads_add_up_as_welch_says() -> None:
    both = Estimate(0.0, Spread(3.0, 4), Spread(4.0, 9)).both
    assert both.error == pytest.approx(5.0)
    assert both.freedom == pytest.approx(5**4 / (3**4 / 4 + 4**4 / 9))


def test_runs_without_spread_leave_no_doubt_but_upon_the_bound_itself() -> None:
    assert otherwise(1.0, Spread(0.0, 2), 0.5) == 0.0
    assert otherwise(0.5, Spread(0.0, 2), 0.5) == 0.5


def test_slower_and_longer_are_both_worse() -> None:
    assert worse_than([55.0, 55.1], [60.0, 60.1], lower_is_better=False).worse > 0
    assert worse_than([440.0, 441.0], [400.0, 401.0], lower_is_better=True).worse > 0
    assert worse_than([66.0, 66.1], [60.0, 60.1], lower_is_better=False).worse < 0


@pytest.mark.parametrize(
    ("metric", "lower"),
    [
        ("tg128@pp2048 c1", False),
        ("pp2048 c1", False),
        ("ttfr@pp2048 c1", True),
        ("median ttft", True),
        ("p99 itl", True),
        ("failed requests", True),
        ("output throughput", False),
        ("kv pool", False),
        ("launch to ready, cold", True),
    ],
)
def test_which_way_is_better(metric: str, lower: bool) -> None:
    assert lower_is_better(metric) is lower


def test_a_clear_pass_is_settled_at_once() -> None:
    found = decided(Threshold(min=50, warn_min=56), 59.1, 59.2, 59.3)
    assert (found.judgement.verdict, found.more_runs) == (Verdict.PASS, 0)


def test_a_clear_failure_is_settled_at_once_and_says_which_bound() -> None:
    found = decided(Threshold(min=50), 31.5, 31.6, 31.7)
    assert (found.judgement.verdict, found.more_runs) == (Verdict.FAIL, 0)
    assert "below 50" in found.judgement.text()


def test_runs_around_the_bound_ask_for_as_many_again() -> None:
    found = decided(Threshold(min=50), 48.0, 50.5, 52.0)
    assert found.more_runs == 3
    assert found.doubts == (f"{DECODE}: its bounds lie within the spread of the runs",)


def test_what_stays_in_doubt_at_the_bound_of_runs_is_no_failure_and_says_so() -> None:
    found = decided(Threshold(min=50), *[48.0, 49.0, 50.0, 51.0, 51.5] * 2, 48.0, 50.0)
    assert (found.judgement.verdict, found.more_runs) == (Verdict.WARN, 0)
    assert "below 50 (a failure, if it is not chance)" in found.judgement.text()


def test_no_more_runs_than_the_gate_allows() -> None:
    found = decide(gate(Threshold(min=50), most_runs=4), Measurement({DECODE: measured([48.0, 50.5, 52.0])}, {}))
    assert found.more_runs == 1


def test_a_certain_failure_is_not_measured_again_for_the_sake_of_another_doubt() -> None:
    both = Gate(
        workload=BenchyWorkload(runs=3),
        thresholds={DECODE: Threshold(min=50), "pp2048 c1": Threshold(min=4000)},
    )
    found = decide(
        both, Measurement({DECODE: measured([31.0, 31.1, 31.2]), "pp2048 c1": measured([3900, 4000, 4150])}, {})
    )
    assert found.doubts
    assert found.more_runs == 0


def test_worse_than_the_last_good_release() -> None:
    good = [59.1, 59.2, 59.3]
    bound = Threshold(last_good=Worse(fail=0.05, warn=0.025))
    assert decided(bound, 59.0, 59.1, 59.2, good=good).judgement.verdict is Verdict.PASS
    assert decided(bound, 57.1, 57.2, 57.15, good=good).judgement.verdict is Verdict.WARN
    failed = decided(bound, 53.2, 53.3, 53.25, good=good)
    assert failed.judgement.verdict is Verdict.FAIL
    assert "10.1 % worse than the last good release's 59.20 ± 0.08 tok/s" in failed.judgement.text()


def test_longer_than_the_last_good_release() -> None:
    bound = gate(Threshold(last_good=Worse(fail=0.1)), TIME)
    good = References({TIME: measured([400.0, 401.0, 402.0])})
    slow = decide(bound, Measurement({TIME: measured([500.0, 501.0, 502.0])}, {}), good)
    assert slow.judgement.verdict is Verdict.FAIL
    assert "24.9 % worse" in slow.judgement.text()
    assert (
        decide(bound, Measurement({TIME: measured([300.0, 301.0, 302.0])}, {}), good).judgement.verdict is Verdict.PASS
    )


def test_without_a_last_good_release_nothing_is_compared_but_the_figure_must_be_worth_comparing_with() -> None:
    bound = Threshold(last_good=Worse(fail=0.025))
    exact = decided(bound, 59.1, 59.2, 59.3)
    assert (exact.judgement.verdict, exact.more_runs) == (Verdict.PASS, 0)
    vague = decided(bound, 57.0, 59.0, 61.0)
    assert (vague.judgement.verdict, vague.more_runs) == (Verdict.PASS, 3)
    assert "too vague" in vague.doubts[0]


def test_an_unusable_last_good_measurement_is_not_compared_with() -> None:
    bound = Threshold(last_good=Worse(fail=0.025))
    assert decided(bound, 59.1, 59.2, 59.3, good=[0.0, 59.0]).judgement.verdict is Verdict.PASS


def test_worse_than_the_fleet() -> None:
    bound = Threshold(fleet=Worse(fail=0.05))
    assert decided(bound, 59.0, 59.1, 59.2, others=(59.3, 58.8, 59.0)).judgement.verdict is Verdict.PASS
    odd = decided(bound, 50.0, 50.1, 50.2, others=(59.3, 58.8, 59.0))
    assert odd.judgement.verdict is Verdict.FAIL
    assert "worse than the median of 3 other hosts" in odd.judgement.text()


def test_a_fleet_of_one_slow_and_two_good_others_is_too_small_to_compare_with() -> None:
    assert (
        decided(Threshold(fleet=Worse(fail=0.05)), 50.0, 50.1, 50.2, others=(59.0, 59.1)).judgement.verdict
        is Verdict.PASS
    )


def test_hosts_that_differ_among_themselves_are_no_reason_to_measure_this_one_again() -> None:
    found = decided(Threshold(fleet=Worse(fail=0.05)), 55.0, 55.1, 55.2, others=(64.0, 58.0, 52.0, 57.0))
    assert found.more_runs == 0


@pytest.mark.parametrize("values", [(0.0, 59.0, 59.1), (math.nan, 59.0, 59.1), (math.inf, 59.0, 59.1), (59.0,)])
def test_what_is_no_figure_fails(values: tuple[float, ...]) -> None:
    metric = Metric(59.0, 0.1, values)
    found = decide(gate(Threshold(min=1)), Measurement({DECODE: metric}, {}))
    assert (found.judgement.verdict, found.more_runs) == (Verdict.FAIL, 0)
    assert "not measured" in found.judgement.text()


def test_what_is_missing_fails_with_its_reason_and_is_not_measured_again() -> None:
    found = decide(gate(Threshold(min=1)), Measurement({}, {DECODE: "3 requests failed"}))
    assert (found.judgement.verdict, found.more_runs) == (Verdict.FAIL, 0)
    assert "3 requests failed" in found.judgement.text()


def test_risks_are_shared_out_over_bounds_and_looks() -> None:
    one = risks_of(gate(Threshold(min=50), most_runs=3))
    assert one.false_alarm == pytest.approx(0.02)
    more = risks_of(gate(Threshold(min=50, last_good=Worse(fail=0.05)), most_runs=12))
    assert more.false_alarm == pytest.approx(0.02 / 2 / 3)


def test_pooled_runs_stand_together() -> None:
    both = pooled([Measurement({DECODE: measured([58.0, 60.0])}, {}), Measurement({DECODE: measured([62.0])}, {})])
    assert both.metrics[DECODE].values == (58.0, 60.0, 62.0)
    assert both.metrics[DECODE].mean == pytest.approx(60.0)


def test_a_repetition_that_lacks_a_figure_takes_it_from_all() -> None:
    whole, broken = Measurement({DECODE: measured([58.0, 60.0])}, {}), Measurement({}, {DECODE: "a request failed"})
    assert pooled([whole, broken]) == Measurement({}, {DECODE: "a request failed"})
    assert DECODE in pooled([whole, Measurement({}, {})]).missing


def as_published(factor: float) -> Measurement:
    """Five runs of each figure of baseline A, with its own spread, times a factor."""
    figures = CATALOG.baselines["vllm-mxfp4-single-stream"].figures
    shape = (-1.4, -0.6, 0.2, 0.6, 1.2)
    metrics = {
        name.split(" (")[0]: measured([factor * (figure.value + step * (figure.std or 0.0)) for step in shape])
        for name, figure in figures.items()
    }
    return Measurement(metrics, {})


@pytest.mark.parametrize(("factor", "wanted"), [(1.0, Verdict.PASS), (0.9, Verdict.WARN), (0.55, Verdict.FAIL)])
def test_the_published_baseline_against_its_own_gate(factor: float, wanted: Verdict) -> None:
    found = decide(CATALOG.gates["vllm-mxfp4-prompt-sizes"], as_published(factor))
    assert (found.judgement.verdict, found.more_runs) == (wanted, 0)
