"""The report for programs: JSON by its published schema, JUnit, Prometheus."""

from __future__ import annotations

import itertools
import json
import re
from xml.etree import ElementTree

import pytest

from modules.reporting.junit import junit_xml
from modules.reporting.prometheus import prometheus_text
from modules.reporting.report import SCHEMA, FleetReport, schema_text
from tests.unit.report_samples import DECODE, FIRST, FLEET, ONE

SAMPLE = re.compile(r'([a-z_]+)\{((?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)*)\} (\S+)')


def test_the_published_schema_is_current() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == schema_text()


def test_a_report_survives_its_own_json() -> None:
    assert FleetReport.model_validate_json(FLEET.model_dump_json()) == FLEET


def test_the_schema_requires_what_readers_rely_on() -> None:
    schema = json.loads(schema_text())
    assert schema["required"] == ["fleet", "generated", "hosts"]
    assert "simulated" in schema["$defs"]["HostReport"]["required"]
    assert schema["additionalProperties"] is False


def test_junit_has_a_case_for_each_gated_service_and_figure() -> None:
    root = ElementTree.fromstring(junit_xml(FLEET))
    suites = {suite.attrib["name"]: suite for suite in root}
    assert list(suites) == ["spark-1", "spark-2", "spark-3", "spark-4", "lab-1"]
    good = suites["spark-1"]
    assert (good.get("tests"), good.get("failures"), good.get("errors")) == ("3", "0", "0")
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("15", "3", "2")


def test_a_server_that_does_not_run_is_no_pass_in_junit_whatever_it_measured_once() -> None:
    first = FLEET.hosts[0]
    stopped = first.services[0].model_copy(update={"state": "stopped", "unit": "inactive (dead)"})
    fleet = FLEET.model_copy(update={"hosts": (first.model_copy(update={"services": (stopped,)}),)})
    (suite,) = ElementTree.fromstring(junit_xml(fleet))
    assert suite.get("failures") == "1"
    (failure,) = suite.iter("failure")
    assert failure.attrib["message"] == "stopped: inactive (dead)"


def test_junit_failures_carry_figure_reason_and_cause() -> None:
    root = ElementTree.fromstring(junit_xml(FLEET))
    case = next(
        case for case in root.iter("testcase") if case.attrib["name"] == DECODE and case.find("failure") is not None
    )
    failure = case.find("failure")
    assert failure is not None
    assert failure.attrib["message"] == "11.04 ± 0.21 tok/s over 5 runs: below 50"
    assert (failure.text or "").startswith("likely cause: low-power state")


def test_junit_calls_what_was_not_measured_an_error_and_never_a_pass() -> None:
    root = ElementTree.fromstring(junit_xml(FLEET))
    silent = next(case for case in root.iter("testcase") if case.attrib["classname"].startswith("spark-4"))
    assert silent.find("error") is not None
    missing = next(case for case in root.iter("testcase") if case.attrib["name"] == FIRST)
    assert missing.find("failure") is not None


def test_what_a_silent_host_says_stands_in_junit_and_prometheus() -> None:
    root = ElementTree.fromstring(junit_xml(FLEET))
    error = next(case for case in root.iter("testcase") if case.attrib["classname"].startswith("spark-4")).find("error")
    assert error is not None
    assert "the host does not tell: Could not connect" in error.attrib["message"]
    found = samples(prometheus_text(FLEET))
    up = {
        labels.split('host="')[1].split('"')[0]: value
        for (name, labels), value in found.items()
        if name.endswith("_up")
    }
    assert up == {"spark-1": 1, "spark-4": 0}


def test_junit_marks_simulated_hosts() -> None:
    root = ElementTree.fromstring(junit_xml(FLEET))
    marked = [
        suite.attrib["name"] for suite in root if suite.find("properties/property[@name='simulated']") is not None
    ]
    assert marked == ["lab-1"]


def samples(text: str) -> dict[tuple[str, str], float]:
    """Every sample, with the labels as they stand; the whole text must be of the exposition format."""
    found = {}
    for line in text.splitlines():
        if line.startswith("# "):
            assert re.fullmatch(r"# (HELP [a-z_]+ .+|TYPE [a-z_]+ gauge)", line)
            continue
        match = SAMPLE.fullmatch(line)
        assert match is not None, line
        found[match[1], match[2]] = float(match[3])
    return found


def test_prometheus_has_figures_in_base_units() -> None:
    found = samples(prometheus_text(ONE))
    labels = 'fleet="home",host="spark-1",service="gpt-oss",simulated="false",release="638676b59d32"'
    assert found["tinderbox_gate_tokens_per_second", f'{labels},metric="{DECODE}"'] == 59.22
    assert found["tinderbox_gate_latency_seconds", f'{labels},metric="{FIRST}"'] == pytest.approx(0.43045)


def test_prometheus_tells_one_verdict_and_one_state_of_each_service() -> None:
    found = samples(prometheus_text(FLEET))
    for family, count in (("tinderbox_gate_verdict", 5), ("tinderbox_service_state", 6)):
        assert sum(value for (name, _), value in found.items() if name == family) == count
    verdicts = {labels: value for (name, labels), value in found.items() if name == "tinderbox_gate_verdict" and value}
    assert [labels for labels in verdicts if 'host="spark-4"' in labels and 'verdict="MISSING"' in labels]


def test_prometheus_has_the_time_of_a_measurement() -> None:
    found = samples(prometheus_text(ONE))
    times = [value for (name, _), value in found.items() if name == "tinderbox_gate_measured_timestamp_seconds"]
    assert times == [1796013907.0]


def test_prometheus_has_what_a_load_of_the_weights_takes() -> None:
    found = samples(prometheus_text(ONE))
    assert found["tinderbox_load_seconds", 'fleet="home",host="spark-1",service="gpt-oss",simulated="false"'] == 33.2


def test_prometheus_escapes_labels() -> None:
    odd = ONE.model_copy(update={"fleet": 'a"b\\c'})
    assert 'fleet="a\\"b\\\\c"' in prometheus_text(odd)
    assert samples(prometheus_text(odd))


def test_prometheus_families_stand_together() -> None:
    names = [line.split("{")[0] for line in prometheus_text(FLEET).splitlines() if not line.startswith("#")]
    changes = sum(before != after for before, after in itertools.pairwise(names))
    assert changes == len(set(names)) - 1
