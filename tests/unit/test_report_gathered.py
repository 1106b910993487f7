"""From what a host tells to what the report shows of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from modules.catalog import load_catalog
from modules.facts.report import HostSeen, ReportState
from modules.facts.service import UnitState
from modules.fleet import Fleet, load_fleet
from modules.fleet.plan import host_plan
from modules.gating import Verdict, workload_id
from modules.reporting.fleet_report import fleet_report
from modules.reporting.gathered import note_seen
from modules.reporting.host_errors import HostError
from modules.reporting.junit import junit_xml
from modules.reporting.measured import load_measured
from modules.reporting.page import render_page
from modules.reporting.record import load_host, load_record
from modules.reporting.report import FleetReport, HostReport, ServiceReport
from modules.reporting.silent import note_silent
from modules.reporting.states import state_of
from modules.spec.gate import BenchyWorkload, Gate, Threshold
from tests.unit.benchy_report import cell, report

CATALOG = load_catalog()
DECODE = "tg128@pp2048 c1"
FLEET_FILE = """
fleet: office
defaults:
  services:
    gpt-oss: {engine: vllm-mxfp4, model: gpt-oss-120b, gate: vllm-mxfp4-single-stream}
hosts:
  spark-1: {address: 192.0.2.1}
  spark-2: {address: 192.0.2.2}
"""
WORKLOAD = BenchyWorkload(pp=(2048,), tg=(128,), runs=5)
GOOD, SLOW = [59.0, 59.1, 59.2, 59.3, 59.4], [11.0, 11.1, 11.0, 11.2, 11.1]
CAUSES = [
    {
        "name": "low-power-state",
        "cause": "low-power state",
        "meaning": "it is slow",
        "action": "unplug it",
        "evidence": ["clock 611 MHz"],
    }
]
LOW_POWER = {
    "clock_mhz": [611.0] * 30, "power_w": [17.0] * 30, "utilisation_percent": [96.0] * 30, "temperature_c": [None] * 30,
}  # fmt: skip


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET_FILE, encoding="utf-8")
    return load_fleet(path)


def measurement(release: str, day: int, decode: list[float], verdict: str | None, **more: Any) -> dict[str, Any]:
    """As `run_gate.py` and `ledger.py judge` leave it; without a verdict as before it is judged."""
    text = report(cell([4700.0, 4710.0, 4720.0, 4690.0, 4705.0], decode, prompt=2048, response=128))
    document = {
        "format": 2,
        "service": "gpt-oss",
        "release": release,
        "workload_id": workload_id(Gate(workload=WORKLOAD, thresholds={DECODE: Threshold(min=50)})),
        "workloads": {"benchy": WORKLOAD.model_dump(mode="json")},
        "finished": f"2026-11-{day:02d}T04:45:07Z",
        "gpu": {"name": "NVIDIA GB10", "driver": "580.95.05"},
        "samples": {},
        "parts": {"benchy": [{"runs": 5, "report": json.loads(text), "faults": []}]},
        "faults": [],
    }
    line = {"metric": DECODE, "verdict": verdict, "reason": "below 50" if verdict == "FAIL" else ""}
    judgement = {"verdict": verdict, "thresholds": "t", "lines": [line], "causes": CAUSES if verdict == "FAIL" else []}
    return document | ({"judgement": judgement} if verdict else {}) | more


def told(*measurements: dict[str, Any], current: str | None = "bbb", **more: Any) -> HostSeen:
    """As a host answers, through the fact."""
    service = {
        "unit": {"ActiveState": "active", "SubState": "running"},
        "current": current,
        "last_good": current,
        "releases": [{"id": "bbb", "events": [{"at": "2026-11-02T04:40:00Z", "event": "good", "note": "PASS"}]}],
        "measurements": list(measurements),
        "checkpoint": None,
        **more,
    }
    answer = {
        "at": "2026-11-30T05:00:00Z",
        "gpu": {"name": "NVIDIA GB10", "driver": "580.95.05"},
        "memory": 130_000_000_000,
        "services": {"gpt-oss": service},
    }
    seen = ReportState().process([json.dumps(answer)])
    assert seen is not None
    return seen


def reported(fleet: Fleet, root: Path) -> FleetReport:
    return fleet_report(
        fleet,
        load_measured(fleet.name, root),
        lambda host, service: load_record(fleet.name, host, service, root),
        CATALOG,
        generated="2026-11-30T05:10:00Z",
        hosts=lambda host: load_host(fleet.name, host, root),
    )


def gathered(fleet: Fleet, root: Path, seen: HostSeen) -> tuple[HostReport, ServiceReport]:
    note_seen(fleet.name, host_plan(fleet.hosts["spark-1"], CATALOG), seen, root)
    host = reported(fleet, root).hosts[0]
    return host, host.services[0]


def test_history_comes_from_the_host_and_needs_no_earlier_run_here(fleet: Fleet, tmp_path: Path) -> None:
    seen = told(measurement("aaa", 1, [58.0] * 4 + [58.1], "PASS"), measurement("bbb", 2, GOOD, "PASS"))
    host, service = gathered(fleet, tmp_path, seen)
    assert (host.state, host.driver, host.seen, host.trouble) == ("running", "580.95.05", seen.at, None)
    assert [point.release for point in service.history] == ["aaa", "bbb"]
    assert service.gate is not None
    decode = service.gate.metrics[0]
    assert decode.now is not None
    assert decode.now.mean == pytest.approx(59.2)
    assert decode.last_good is not None
    assert decode.last_good.mean == pytest.approx(58.02)
    assert service.gate.workload.startswith("llama-benchy --model openai/gpt-oss-120b")
    assert service.releases[0].events[0].event == "good"
    assert service.unit == "active (running)"


def test_gathering_twice_changes_nothing(fleet: Fleet, tmp_path: Path) -> None:
    seen = told(measurement("bbb", 2, GOOD, "PASS"))
    gathered(fleet, tmp_path, seen)
    first = reported(fleet, tmp_path)
    gathered(fleet, tmp_path, seen)
    assert reported(fleet, tmp_path) == first


def test_what_only_the_controller_knows_of_the_past_stays(fleet: Fleet, tmp_path: Path) -> None:
    gathered(fleet, tmp_path, told(measurement("bbb", 2, SLOW, "FAIL")))
    _, service = gathered(fleet, tmp_path, told(measurement("bbb", 3, GOOD, "PASS")))
    assert [point.verdict for point in service.history] == [Verdict.FAIL, Verdict.PASS]


def test_a_failed_release_that_was_taken_back_is_told_with_its_telemetry_and_cause(
    fleet: Fleet, tmp_path: Path
) -> None:
    seen = told(
        measurement("aaa", 1, GOOD, "PASS"), measurement("bbb", 2, SLOW, "FAIL", samples=LOW_POWER), current="aaa"
    )
    _, service = gathered(fleet, tmp_path, seen)
    assert service.gate is not None
    assert (service.release, service.gate.verdict) == ("aaa", Verdict.PASS)
    failure = service.failure
    assert failure is not None
    assert (failure.release, failure.causes[0].cause) == ("bbb", "low-power state")
    assert failure.telemetry["clock_mhz"][0] == 611.0
    assert any("below 50" in reason for reason in failure.reasons)


def test_a_failed_release_in_force_is_told_with_its_cause(fleet: Fleet, tmp_path: Path) -> None:
    _, service = gathered(fleet, tmp_path, told(measurement("bbb", 2, SLOW, "FAIL", samples=LOW_POWER)))
    assert service.gate is not None
    assert service.gate.causes[0].cause == "low-power state"
    assert service.gate.telemetry["power_w"] == (17.0,) * 30
    assert service.failure is None


def test_a_release_without_a_measurement_has_not_that_of_the_one_before(fleet: Fleet, tmp_path: Path) -> None:
    gathered(fleet, tmp_path, told(measurement("aaa", 1, GOOD, "PASS"), current="aaa"))
    _, service = gathered(fleet, tmp_path, told(measurement("aaa", 1, GOOD, "PASS"), current="bbb"))
    assert (service.release, service.gate) == ("bbb", None)
    assert len(service.history) == 1


def test_what_no_speed_makes_good_is_told(fleet: Fleet, tmp_path: Path) -> None:
    line = {"metric": "benchy", "verdict": "FAIL", "reason": "empty-content: no reply had content"}
    judgement = {"verdict": "FAIL", "thresholds": "t", "lines": [line], "causes": CAUSES}
    stored = measurement("bbb", 2, GOOD, None, judgement=judgement)
    _, service = gathered(fleet, tmp_path, told(stored))
    assert service.gate is not None
    assert (service.gate.verdict, service.gate.faults) == (Verdict.FAIL, {"benchy": line["reason"]})
    page = render_page(reported(fleet, tmp_path))
    assert "<b>Matrix of prompts</b>: empty-content: no reply had content" in page
    assert 'failure message="empty-content: no reply had content"' in junit_xml(reported(fleet, tmp_path))


def test_what_nobody_has_judged_yet_is_judged_by_the_fixed_bounds(fleet: Fleet, tmp_path: Path) -> None:
    _, service = gathered(fleet, tmp_path, told(measurement("bbb", 2, SLOW, None)))
    assert service.gate is not None
    assert (service.gate.verdict, service.gate.metrics[0].reason) == (Verdict.FAIL, "below 50")


def test_what_a_later_version_has_stored_is_left_out(fleet: Fleet, tmp_path: Path) -> None:
    odd = measurement("aaa", 1, GOOD, None) | {"workloads": {"kind": "of next year"}}
    _, service = gathered(fleet, tmp_path, told(odd, measurement("bbb", 2, GOOD, "PASS")))
    assert [point.release for point in service.history if point.readings] == ["bbb"]


def test_a_host_that_falls_silent_is_unknown_with_its_last_figures(fleet: Fleet, tmp_path: Path) -> None:
    gathered(fleet, tmp_path, told(measurement("bbb", 2, GOOD, "PASS")))
    error = HostError(host="spark-1", operation="", said="Could not connect (timed out)")
    note_silent(fleet, ["spark-1", "spark-2"], {"spark-1": [error]}, tmp_path)
    silent, never = reported(fleet, tmp_path).hosts
    assert (silent.state, silent.services[0].state) == ("unknown", "unknown")
    assert (silent.trouble or "").startswith("Could not connect (timed out): nothing lets us in at 192.0.2.1 port 22")
    assert silent.seen == "2026-11-30T05:00:00Z"
    assert silent.services[0].gate is not None
    assert (never.state, never.trouble, never.seen) == ("unknown", "it did not answer", None)
    host, _ = gathered(fleet, tmp_path, told(measurement("bbb", 2, GOOD, "PASS")))
    assert (host.state, host.trouble) == ("running", None)


def test_the_memory_plan_is_reckoned_from_the_files_on_the_host(fleet: Fleet, tmp_path: Path) -> None:
    summary: dict[str, Any] = {"format": "safetensors", "tensors": {"U8": 60 * 10**9}, "config": None, "problems": []}
    _, service = gathered(fleet, tmp_path, told(checkpoint=summary))
    assert service.memory is not None
    parts = {part.name: part.bytes for part in service.memory.parts}
    assert parts["weights"] > 60 * 10**9
    assert service.memory.machine_bytes == 130_000_000_000


def test_what_a_load_of_the_weights_takes_comes_from_the_host_and_is_held_against_the_catalog(
    fleet: Fleet, tmp_path: Path
) -> None:
    slow = {"cold": 0.18e9, "warm": 9e9}
    rates = {
        "disk": {"source": "/dev/sda1", "type": "ext4"}, "bytes": 66 * 10**9, "sampled": 4 * 10**9, "direct": 2e9,
        "reading": slow, "mapping": slow,
    }  # fmt: skip
    figures = {"cold": [2e9], "warm": [9e9], "cached": [0.0]}
    ways = {"safetensors-copy": figures, "fastsafetensors": {"cold": [1e9], "warm": [1e9], "cached": [0.0]}}
    load = {"rates": rates, "ways": {"device": "GB10", "bytes": 8, "files": 2, "versions": {}, "ways": ways}}

    _, service = gathered(fleet, tmp_path, told(load=load))

    assert service.load is not None
    assert (round(service.load.seconds), service.load.limit_s) == (367, 145)
    assert "it is the way of reading that is slow" in service.load.slow
    assert "flags.load-format: safetensors under services.gpt-oss" in service.load.advice
    # A host that tells nothing more of it, since its disk is another now, has been told of all the same.
    _, later = gathered(fleet, tmp_path, told())
    assert later.load == service.load


@pytest.mark.parametrize(
    ("active", "sub", "state"),
    [
        ("active", "running", "running"),
        ("reloading", "reload", "running"),
        ("activating", "start-pre", "stopped"),
        ("activating", "auto-restart", "failed"),
        ("failed", "failed", "failed"),
        ("inactive", "dead", "stopped"),
        ("unknown", "unknown", "unknown"),
    ],
)
def test_states(active: str, sub: str, state: str) -> None:
    assert state_of(UnitState(active=active, sub=sub, enabled=True, stale=False, job=False)) == state
