"""Alerts say what is wrong with whom, what to do, and where more stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from modules.monitoring.alerts import Alert, alerts_of
from modules.monitoring.configuration import site_files
from modules.monitoring.rules import rules
from modules.monitoring.targets import Watched, WatchedHost, WatchedService
from modules.spec.monitoring import Alerts

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs/monitoring.md").read_text()
SEEN = Watched(
    "office",
    tuple(
        WatchedHost(name, f"10.0.0.{at}:9100", False, (WatchedService(name, "gpt-oss", 1200, True),))
        for at, name in enumerate(("spark-1", "spark-2"), start=11)
    ),
)
ALL = alerts_of(SEEN, Alerts(nightly_hours=30))


@pytest.mark.parametrize("alert", ALL, ids=lambda one: one.name)
def test_an_alert_names_its_host_or_fleet_and_what_to_do(alert: Alert) -> None:
    assert "$labels.host" in alert.summary or "fleet office" in alert.summary
    assert len(alert.action) > 20
    assert alert.severity in {"critical", "warning"}
    # Two fleets may share one Prometheus.
    assert "{" in alert.expression
    assert all('fleet="office"' in selector for selector in re.findall(r"\{[^}]*\}", alert.expression))


@pytest.mark.parametrize("alert", ALL, ids=lambda one: one.name)
def test_its_runbook_is_in_the_docs(alert: Alert) -> None:
    assert f"\n### {alert.anchor}\n" in DOCS
    assert f"[{alert.anchor}](#{alert.anchor})" in DOCS


def test_the_docs_have_no_runbook_of_an_alert_that_is_none() -> None:
    assert set(re.findall(r"^### ([a-z-]+)$", DOCS, re.MULTILINE)) == {alert.anchor for alert in ALL}


@pytest.mark.parametrize(
    "path", sorted({word for one in ALL for word in re.findall(r"(?:docs|deploys)/[\w.-]+\w", one.action)})
)
def test_what_it_says_to_do_is_there(path: str) -> None:
    assert (ROOT / path).is_file()


def test_without_a_nightly_check_none_is_missed() -> None:
    assert "TinderboxNightlyCheckMissing" not in {one.name for one in alerts_of(SEEN, Alerts())}


def test_what_is_expected_is_recorded_by_name() -> None:
    found = [rule["labels"] for rule in rules(SEEN, Alerts())["groups"][0]["rules"]]
    assert {"fleet": "office", "host": "spark-2"} in found
    assert {"fleet": "office", "host": "spark-2", "service": "gpt-oss"} in found


def test_times_are_shortened_by_the_fleet_file_and_never_made_longer() -> None:
    waits = [
        {rule["alert"]: rule["for"] for rule in rules(SEEN, Alerts(for_s=for_s))["groups"][1]["rules"]}
        for for_s in (None, 90, 0)
    ]
    assert [each["TinderboxEngineNotReady"] for each in waits] == ["1500s", "90s", "0s"]
    assert [each["TinderboxRestartLoop"] for each in waits] == ["0s", "0s", "0s"]


def test_rules_are_yaml_that_reads_back() -> None:
    files = site_files(SEEN, Alerts())
    assert yaml.safe_load(files["rules.yml"]) == rules(SEEN, Alerts())
    assert [one["labels"]["host"] for one in yaml.safe_load(files["targets.json"])] == ["spark-1", "spark-2"]
