"""Every finding of the catalog is found in a sample, tells what it costs, and goes away by its remedy."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from modules.catalog import load_catalog
from modules.facts.machine import machine_state
from modules.spec.lock import Lock
from roles.preflight.finding import Finding, Severity
from roles.preflight.judge import judge, verdict
from tests.lab.finding_cases import HOST_CASES
from tests.unit.finding_samples import LEAVES_THE_FLEET, NOTHING_STORED, OTHER_SEVERITIES, SAMPLES, Sample, plan_of
from tests.unit.preflight_machine import answer

ROOT = Path(__file__).parents[2]
KNOWN = load_catalog().findings
NOW = 1_796_000_000.0
EVERY = [(id_, known.severity[0], SAMPLES.get(id_)) for id_, known in KNOWN.items()] + [
    (id_, severity, sample) for (id_, severity), sample in OTHER_SEVERITIES.items()
]


def found(changes: Mapping[str, Any], settings: Mapping[str, Any], *, python: bool = True) -> list[Finding]:
    said = {"models": NOTHING_STORED, "docker_group": True, **changes}
    lines = answer(**said) if python else ["not installed"]
    return judge(machine_state(lines, now=NOW if "now" in changes else None), plan_of(settings), Lock())


def changed(settings: Mapping[str, Any], changes: Mapping[str, object]) -> dict[str, Any]:
    """Settings with keys `a.b.c` set; None takes a key away."""
    document: dict[str, Any] = json.loads(json.dumps(dict(settings), default=lambda one: one.model_dump(mode="json")))
    document.setdefault(
        "services", plan_of(settings).settings.model_dump(mode="json", exclude_defaults=True)["services"]
    )
    for key, value in changes.items():
        *folders, last = key.split(".")
        place = document
        for folder in folders:
            place = place.setdefault(folder, {})
        if value is None:
            place.pop(last)
        else:
            place[last] = value
    return document


@pytest.mark.parametrize(("id_", "severity", "sample"), EVERY, ids=[f"{id_}-{severity}" for id_, severity, _ in EVERY])
def test_a_finding_is_found_tells_its_cost_and_goes_by_its_remedy(
    id_: str, severity: str, sample: Sample | None
) -> None:
    assert sample is not None, f"{id_} has no sample in tests/unit/finding_samples.py"
    known = KNOWN[id_]
    ones = [one for one in found(sample.before, sample.settings, python=sample.python) if one.id == id_]
    assert len(ones) == 1, f"{id_} is not found, or more than once"
    (one,) = ones
    assert one.severity.value == severity
    assert one.cost
    assert verdict(ones) == {"blocked": "blocked", "slow": "slow", "note": "ready"}[one.severity.value]
    assert bool(one.remedy) == (known.cure != "nothing to do")
    for command in one.commands:
        assert f"`{command}`" in one.remedy, "a command that the remedy does not show"
    assert bool(one.commands) or known.cure != "commands" or (id_, severity) in OTHER_SEVERITIES
    if sample.after is None:
        assert one.settings
        after = found(sample.before, changed(sample.settings, one.settings), python=sample.python)
    elif sample.after == LEAVES_THE_FLEET:
        return
    else:
        assert isinstance(sample.after, Mapping)
        after = found(sample.after, sample.settings)
    assert id_ not in [one.id for one in after]


def test_the_code_knows_no_finding_that_the_catalog_has_not_and_finds_each_that_it_has() -> None:
    named = set()
    for path in (ROOT / "roles" / "preflight").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"found", "_told"}:
                first = node.args[0]
                if isinstance(first, ast.Constant):
                    named.add(first.value)
                else:
                    assert path.name == "docker.py", f"{path}: a finding without a constant id"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Finding":
                assert path.name == "finding.py", f"{path}: findings are made by found()"
    assert named == set(KNOWN)
    assert set(SAMPLES) == set(KNOWN)
    severities = {(id_, severity) for id_, known in KNOWN.items() for severity in known.severity}
    assert set(OTHER_SEVERITIES) <= severities


def test_each_remedy_is_applied_to_a_lab_host_or_is_unverified_on_hardware() -> None:
    tried = {id_ for id_, known in KNOWN.items() if known.verified != "unverified on hardware"}
    assert set(HOST_CASES) == tried
    for known in KNOWN.values():
        assert known.verified == "unverified on hardware" or "lab host" in known.verified


def test_docs_list_every_finding_as_the_catalog_has_it() -> None:
    text = (ROOT / "docs" / "check.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert rows == [
        f"| `{id_}` | {', '.join(known.severity)} | {known.meaning} | {known.cost} | {known.cure} | {known.verified} |"
        for id_, known in KNOWN.items()
    ]


def test_a_cap_of_13_watts_is_told_as_a_share_of_the_speed() -> None:
    (one,) = [one for one in found(SAMPLES["power-low"].before, {}) if one.id == "power-low"]
    assert one.cost == "13 W and 611 MHz in place of 2400: a quarter of the speed, at most"
    assert one.severity is Severity.BLOCKED


def test_a_refusal_of_a_later_stage_does_not_stop_the_host_here() -> None:
    (one,) = [one for one in found(SAMPLES["port-taken"].before, {}) if one.id == "port-taken"]
    assert one.stage == "engine"
    assert "8000 of service gpt-oss is taken by ollama (pid 911, ollama.service, as Ollama names its own)" in str(one)
    assert one.commands == ("sudo systemctl disable --now ollama.service",)


def test_an_engine_in_a_container_is_named_with_its_tool_and_stopped_so_that_it_stays_so() -> None:
    (one,) = [one for one in found(SAMPLES["engine-foreign"].before, {}) if one.id == "engine-foreign"]
    assert one.measured == (
        "vllm serve (pid 4711, container sparkrun_gptoss_solo of image scitrera/dgx-spark-vllm:0.13.0, as sparkrun "
        "names its own) holds 70.0 GiB of GPU memory"
    )
    name = "sparkrun_gptoss_solo"
    assert one.commands == (f"sudo docker update --restart=no {name}", f"sudo docker stop {name}")
