"""The page: every number as in the JSON, nothing loaded from elsewhere, drawings that are well formed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest

from modules.gating import Verdict
from modules.reporting.page import render_page
from modules.reporting.page.history import history_plot
from modules.reporting.report import Bounds, FleetReport, HistoryPoint, HostReport, Reading
from modules.reporting.wording import amount, wording_of
from tests.unit.report_samples import (
    DECODE,
    FLEET,
    GOOD,
    LAB,
    MEMORY,
    ONE,
    PREFILL,
    SILENT,
    SLOW,
    WARNED,
    metric,
    service,
)

VOID = {"meta", "link", "br"}


class Page(HTMLParser):
    """Elements with their attributes, texts, and whether every one is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, dict[str, str]]] = []
        self.data: list[tuple[dict[str, str], str]] = []
        self.words = ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)
            if tag == "data":
                self.data.append((self.attributes[-1][1], ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "data":
            self.data[-1] = (self.data[-1][0], data)
        if not {"style", "script"} & set(self.open):
            self.words += data


TEXT = render_page(FLEET)
PAGE = Page(TEXT)


def page_of(*hosts: HostReport) -> str:
    return render_page(FleetReport(fleet="office", generated="2026-11-30T05:10:00Z", hosts=hosts))


def figures(report: FleetReport) -> Iterator[tuple[str, float]]:
    """Every figure that has to stand on the page, by where it belongs."""
    for host in report.hosts:
        for one in host.services:
            for found in one.gate.metrics if one.gate is not None else ():
                of = f"{host.name}/{one.name}/{found.name}"
                if found.now is not None:
                    yield f"{of}/now", found.now.mean
                    yield f"{of}/std", found.now.std
                if found.last_good is not None:
                    yield f"{of}/last_good", found.last_good.mean
                if found.baseline is not None:
                    yield f"{of}/baseline", found.baseline.value


def embedded(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="report">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    document: dict[str, Any] = json.loads(found[1])
    return document


def test_every_number_is_the_one_of_the_json() -> None:
    shown = {attributes["data-of"]: (float(attributes["value"]), text) for attributes, text in PAGE.data}
    wanted = dict(figures(FLEET))
    assert len(wanted) > 20
    for of, value in wanted.items():
        assert shown[of] == (value, amount(value))
    assert {of for of in shown if not of.endswith("/headline")} == set(wanted)


def test_the_json_stands_in_the_page() -> None:
    assert FleetReport.model_validate(embedded(TEXT)) == FLEET


def test_nothing_comes_from_elsewhere_and_no_script_runs() -> None:
    assert not re.search(r"https?:|//[a-z]|@import|url\(", TEXT)
    scripts = [attributes for tag, attributes in PAGE.attributes if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "report"}]
    for tag, attributes in PAGE.attributes:
        assert not attributes.get("src"), tag
        assert not [name for name in attributes if name.startswith("on")], tag
        assert attributes.get("href", "#").startswith(("#", "data:")), tag
    policies = [
        attributes["content"] for tag, attributes in PAGE.attributes if tag == "meta" and "content" in attributes
    ]
    assert any("default-src 'none'" in policy for policy in policies)


def test_drawings_are_well_formed_and_say_what_they_show() -> None:
    drawings = re.findall(r"<svg.*?</svg>", TEXT, re.DOTALL)
    assert len(drawings) > 20
    for drawing in drawings:
        root = ElementTree.fromstring(drawing)
        left, top, width, height = map(float, root.attrib["viewBox"].split())
        assert root.get("aria-label") or root.get("aria-hidden")
        for element in root.iter():
            for name in ("x", "x1", "x2", "cx"):
                assert left - 1 <= float(element.get(name, "0")) <= left + width + 1, drawing
            for name in ("y", "y1", "y2", "cy"):
                assert top - 1 <= float(element.get(name, "0")) <= top + height + 1, drawing
            assert "nan" not in "".join(element.attrib.values()).lower()


def test_a_bar_is_as_long_as_its_figure_says() -> None:
    bullets = [
        ElementTree.fromstring(svg) for svg in re.findall(r'<svg[^>]*class="bullet".*?</svg>', page_of(GOOD), re.DOTALL)
    ]
    decode = next(one for one in bullets if one.attrib["aria-label"].startswith("Decode"))
    bar = next(float(one.attrib["width"]) for one in decode if one.get("class") == "now")
    fails = next(float(one.attrib["width"]) for one in decode if one.get("class") == "zone fail")
    assert bar / fails == pytest.approx(59.22 / 50, rel=1e-3)


def test_history_has_a_mark_for_every_measurement_by_its_verdict() -> None:
    plots = re.findall(r'<svg[^>]*aria-label="Decode over 6 measurements.*?</svg>', page_of(GOOD), re.DOTALL)
    assert len(plots) == 1
    assert re.findall(r'class="marker (\w+)"', plots[0]) == ["fail", "pass", "pass", "pass", "warn", "pass"]
    assert "8a41d3370c92, 2026-06-15 04:45 UTC: 57.40 ± 0.25 tok/s, PASS" in plots[0]


def test_a_history_of_one_day_tells_times_and_large_figures_short() -> None:
    points = tuple(
        HistoryPoint(
            release="a" * 12,
            measured=f"2026-11-30T0{hour}:15:00Z",
            verdict=Verdict.PASS,
            readings={PREFILL: Reading(mean=mean, std=40_000.0, runs=3)},
        )
        for hour, mean in ((4, 30_000.0), (7, 90_000.0))
    )
    plot = history_plot(metric(PREFILL, 90_000.0, bounds=Bounds(min=5)), points)
    assert plot is not None
    assert {"04:15", "07:15", "50k"} <= set(re.findall(r">([^<>]+)</text>", plot))
    whiskers = re.findall(r'class="spread"', plot)
    assert len(whiskers) == 2
    ys = [float(y) for y in re.findall(r'<line x1="[\d.]+" y1="([\d.]+)" x2="[\d.]+" y2="[\d.]+" class="spread"', plot)]
    assert max(ys) <= 140


def test_gaps_in_telemetry_stay_gaps() -> None:
    drawn = {
        svg: svg.count('class="series"')
        for svg in re.findall(r"<svg.*?</svg>", page_of(SLOW), re.DOTALL)
        if "seconds" in svg
    }
    assert sorted(drawn.values()) == [1, 1, 1, 1, 1, 2]


def test_telemetry_is_open_where_the_gate_failed_and_closed_where_it_passed() -> None:
    assert '<details class="block" open>' in page_of(SLOW)
    assert '<details class="block" open>' not in page_of(GOOD)


def test_a_failure_is_told_with_its_cause_and_remedy() -> None:
    words = Page(page_of(SLOW)).words
    assert "Likely cause: low-power state" in words
    assert "Seen: clock 642 MHz; power 18.1 W." in words
    assert "unplug its power supply" in words
    assert "not measured (2 of 5 runs gave a value)" in words


def test_simulated_is_said_of_lab_hosts_and_of_no_other() -> None:
    assert page_of(LAB).count('<span class="pill simulated plain">simulated</span>') == 2
    assert "Simulated GPUs." in page_of(LAB)
    assert "Simulated" not in page_of(GOOD)
    # Speeds of a lab host do not stand beside those of real ones.
    assert "lab-1" not in re.findall(r'<div class="bars">.*?</section>', TEXT, re.DOTALL)[0]


def test_a_silent_host_is_unknown_and_neither_failed_nor_fine() -> None:
    words = Page(page_of(SILENT)).words
    assert "unknown" in words
    assert "NOT MEASURED" in words
    assert "the host does not tell" in words
    assert "What follows is from 2026-11-28 17:20 UTC, when it last told." in words
    assert "nothing lets us in at spark-4.local port 22" in words
    assert "PASS" not in words
    never = SILENT.model_copy(update={"seen": None, "trouble": None})
    assert "the host was not asked, or did not answer" in Page(page_of(never)).words


def test_a_release_that_was_taken_back_is_told_with_its_telemetry() -> None:
    text = page_of(WARNED)
    words = Page(text).words
    assert "Failed, and taken back" in words
    assert "release f00d5e1ec7edmeasured 2026-11-30 05:01 UTC" in words
    assert "12.31 ± 0.30  below 50" in words
    assert "Likely cause: low-power state" in words
    assert '<details class="block" open>' in text
    assert "release f00d5e1ec7ed failed, and another one serves since" in words


def test_the_ledger_is_told_the_newest_first() -> None:
    words = Page(page_of(GOOD)).words
    assert "Releases: 2, the newest first" in words
    ledger = words[words.index("Releases: 2") :]
    assert ledger.index("638676b59d32") < ledger.index("c2e9017744b5")
    assert "2026-11-30 04:45 UTC good: PASS" in ledger


def test_the_tiles_count_every_gate() -> None:
    tiles = re.findall(r'<div class="tile(?: none)?"><b class="\w*">(\d+)</b><span>([^<]*)</span>', TEXT)
    assert tiles == [
        ("5", "hosts"), ("2", "gates passed"), ("1", "with a warning"), ("1", "failed"), ("1", "not measured"),
    ]  # fmt: skip


def test_what_needs_looking_at_stands_first() -> None:
    kinds = re.findall(r'<li><span class="pill plain \w+">([^<]+)</span>', TEXT)
    assert kinds == ["FAIL", "unknown", "WARN", "WARN", "WARN"]
    assert "To look at" not in render_page(ONE)


def test_the_memory_plan_says_what_is_left_or_too_much() -> None:
    assert "left 14.3 GiB" in Page(page_of(GOOD)).words
    tight = MEMORY.model_copy(update={"machine_bytes": 100 * 1024**3})
    crowded = GOOD.model_copy(update={"services": (service(None, memory=tight),)})
    assert "7.3 GiB more than the machine has" in Page(page_of(crowded)).words


def test_what_a_load_of_the_weights_takes_is_told_and_a_slow_one_warned_of() -> None:
    assert "66.4 GB of weights load in 33 s or more (limit 145 s): read at 2.00 GB/s from the disk" in TEXT
    assert "10.00 from memory, the disk itself gives 5.00 GB/s" in TEXT
    looked_at = TEXT.split("To look at")[1].split("</ul>")[0]
    assert 'spark-2</a> gpt-oss: <span class="muted">the weights will take 369 s or more to load' in looked_at


def test_names_of_a_fleet_can_not_break_the_page() -> None:
    evil = "</script><script>alert(1)</script>"
    host = GOOD.model_copy(update={"name": evil, "gpu": '<img src=x onerror="alert(1)">'})
    text = page_of(host)
    assert "<script>alert" not in text
    assert "<img" not in text
    assert embedded(text)["hosts"][0]["name"] == evil
    Page(text)


def test_a_figure_without_bounds_or_company_is_drawn_too() -> None:
    lone = service(None).model_copy(
        update={"gate": GOOD.services[0].gate.model_copy(update={"metrics": (metric(DECODE, 0.5, verdict=None),)})}  # type: ignore[union-attr]
    )
    text = page_of(GOOD.model_copy(update={"services": (lone,)}))
    assert "no threshold" in text
    assert "published baseline" not in Page(text).words


def test_an_empty_fleet_has_a_page() -> None:
    Page(page_of())
    Page(page_of(HostReport(name="spark-9", state="unknown", simulated=False)))


@pytest.mark.parametrize(
    ("value", "text"), [(59.22, "59.22"), (4771.75, "4,772"), (430.45, "430.4"), (0.07, "0.07"), (17515.3, "17,515")]
)
def test_amounts(value: float, text: str) -> None:
    assert amount(value) == text


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("tg128@pp2048 c1", ("Decode", "128 tokens, 2,048-token prompt, one stream")),
        ("random output throughput", ("Output throughput", "Random prompts")),
        ("sharegpt p99 ttft", ("First token", "99 of 100 within, ShareGPT replay")),
        ("cold start kv cache", ("KV cache", "Cold start")),
        ("anything else", ("Anything else", "")),
    ],
)
def test_metrics_have_words(metric: str, words: tuple[str, str]) -> None:
    found = wording_of(metric)
    assert (found.title, found.detail) == words


def test_verdicts_have_their_colour() -> None:
    assert re.findall(r'pill solid (\w+)">(\w+)', page_of(SLOW)) == [("fail", str(Verdict.FAIL))]
