"""What stands beside a verdict: what the gate asks, and why a figure passes that is far from its references."""

from __future__ import annotations

import re

import pytest

from modules.gating import Verdict
from modules.reporting.asked import asked, let_pass
from modules.reporting.page import render_page
from modules.reporting.report import Bounds, FleetReport, GateReport, HostReport, MetricReport, RelativeBound
from tests.unit.report_samples import DECODE, FIRST, GOOD, LAB, metric, service

LOOSE = Bounds(min=5)
HELD = Bounds(min=5, last_good=RelativeBound(fail=0.7, warn=0.65), fleet=RelativeBound(fail=0.2))


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (metric(DECODE, 59.0, bounds=Bounds(min=50, warn_min=56)), "at least 50, warns below 56"),
        (metric(FIRST, 430.0, bounds=Bounds(max=1500)), "at most 1,500"),
        (
            metric(DECODE, 59.0, bounds=HELD),
            "at least 5, at most 70 % slower than last good, warns when 65 % slower than last good, "
            "at most 20 % slower than the fleet's median",
        ),
        (
            metric(FIRST, 430.0, bounds=Bounds(last_good=RelativeBound(fail=0.1))),
            "at most 10 % longer than last good",
        ),
        (metric(DECODE, 59.0, verdict=None), "no threshold"),
    ],
)
def test_bounds_are_told_in_words(shown: MetricReport, words: str) -> None:
    assert asked(shown) == words


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (
            metric(DECODE, 16.1, bounds=LOOSE, last_good=40.1),
            "which is all that is asked: it is not held to the last good release",
        ),
        (
            metric(DECODE, 16.1, bounds=LOOSE, last_good=40.1, baseline=59.2),
            "which is all that is asked: it is not held to the last good release or the published baseline",
        ),
        (metric(FIRST, 900.0, bounds=Bounds(max=1500), last_good=440.0), "which is all that is asked"),
        (metric(DECODE, 16.1, verdict=None, last_good=40.1), "so it passes whatever it is"),
        # Nothing to explain: near, better, held to it, or not passed at all.
        (metric(DECODE, 39.0, bounds=LOOSE, last_good=40.1), ""),
        (metric(DECODE, 80.0, bounds=LOOSE, last_good=40.1, baseline=59.2), ""),
        (metric(FIRST, 200.0, bounds=LOOSE, last_good=440.0), ""),
        (metric(DECODE, 16.1, bounds=HELD, last_good=40.1), ""),
        (metric(DECODE, 59.0, verdict=None), ""),
        (metric(DECODE, 4.0, verdict=Verdict.FAIL, reason="below 5", bounds=LOOSE, last_good=40.1), ""),
        (metric(DECODE, None, verdict=Verdict.FAIL, bounds=LOOSE, last_good=40.1), ""),
    ],
)
def test_a_pass_far_from_its_references_is_explained(shown: MetricReport, words: str) -> None:
    assert let_pass(shown).startswith(words)
    assert bool(let_pass(shown)) is bool(words)


def page_of(*metrics: MetricReport) -> str:
    gate = GateReport(verdict=Verdict.PASS, measured="2026-11-30T04:45:07Z", metrics=metrics)
    host = HostReport(name="spark-1", state="running", simulated=False, services=(service(gate),))
    text = render_page(FleetReport(fleet="office", generated="2026-11-30T05:10:00Z", hosts=(host,)))
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", text.split("<script")[0]))


def test_the_page_says_so_beside_the_verdict_and_how_to_change_it() -> None:
    words = page_of(metric(DECODE, 16.1, bounds=LOOSE, last_good=40.1))
    assert "-59.9 %" in words
    assert "PASSat least 5, which is all that is asked: it is not held to the last good release" in words
    assert "last_good: {fail: 0.05}" in words
    for fine in (GOOD, LAB):
        (one,) = fine.services
        assert one.gate is not None
        assert "all that is asked" not in page_of(*one.gate.metrics)
        assert "last_good: {" not in page_of(*one.gate.metrics)
