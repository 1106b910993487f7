"""From the fleet file and what the controller keeps to the report."""

from __future__ import annotations

from pathlib import Path

import pytest

from modules.catalog import load_catalog
from modules.fleet import Fleet, load_fleet
from modules.gating import Judgement, Line, Verdict
from modules.gating.explain import Cause
from modules.reporting.fleet_report import fleet_report
from modules.reporting.measured import Figure, Measured, MeasuredService
from modules.reporting.page.write import write_all
from modules.reporting.record import (
    LONGEST_HISTORY,
    ServiceRecord,
    history_point,
    load_record,
    note_gate,
    note_memory,
    note_state,
    record_file,
    with_point,
)
from modules.reporting.report import FleetReport, GateReport, MemoryPart, MemoryReport
from modules.spec.baseline import Figure as Published

CATALOG = load_catalog()
DECODE, PREFILL = "tg128@pp2048 c1", "pp2048 c1"
FLEET_FILE = """
fleet: office
defaults:
  services:
    gpt-oss: {engine: vllm-mxfp4, model: gpt-oss-120b, gate: vllm-mxfp4-single-stream}
hosts:
  spark-1: {address: 192.0.2.1}
  spark-2: {address: 192.0.2.2}
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET_FILE, encoding="utf-8")
    return load_fleet(path)


def measured(
    release: str = "aaaaaaaaaaaa", *, decode: float = 59.2, verdict: Verdict = Verdict.PASS, day: int = 1
) -> MeasuredService:
    return MeasuredService(
        host="spark-1",
        service="gpt-oss",
        engine="vllm-mxfp4",
        profile="latency",
        model="gpt-oss-120b",
        port=8000,
        gpu="NVIDIA GB10",
        release=release,
        verdict=verdict,
        measured=f"2026-11-{day:02d}T04:45:07Z",
        metrics={
            DECODE: Figure(mean=decode, std=0.1, values=(decode - 0.1, decode, decode + 0.1)),
            PREFILL: Figure(mean=4700.0, std=40.0, values=(4650.0, 4700.0, 4750.0)),
        },
        reasons=[],
    )


def judgement(verdict: Verdict, reason: str = "") -> Judgement:
    return Judgement(verdict, (Line(DECODE, verdict, None, reason),))


def reported(fleet: Fleet, root: Path, *services: MeasuredService) -> FleetReport:
    kept = Measured(services={f"{one.host}/{one.service}": one for one in services})
    return fleet_report(
        fleet,
        kept,
        lambda host, service: load_record(fleet.name, host, service, root),
        CATALOG,
        generated="2026-11-30T05:10:00Z",
    )


def gate_of(report: FleetReport) -> GateReport:
    gate = report.hosts[0].services[0].gate
    assert gate is not None
    return gate


def test_hosts_that_nothing_is_known_of_are_in_the_report_as_unknown(fleet: Fleet, tmp_path: Path) -> None:
    report = reported(fleet, tmp_path)
    assert [(host.name, host.state, host.gpu) for host in report.hosts] == [
        ("spark-1", "unknown", None),
        ("spark-2", "unknown", None),
    ]
    assert report.hosts[0].services[0].gate is None
    assert report.hosts[0].services[0].gated


def test_a_gate_stands_beside_bounds_baseline_and_last_good(fleet: Fleet, tmp_path: Path) -> None:
    first, second = measured(decode=58.0, day=1), measured("bbbbbbbbbbbb", day=2)
    note_gate(fleet.name, first, judgement(Verdict.PASS), last_good="aaaaaaaaaaaa", root=tmp_path)
    note_gate(fleet.name, second, judgement(Verdict.PASS), last_good="bbbbbbbbbbbb", driver="580.95.05", root=tmp_path)
    report = reported(fleet, tmp_path, second)
    host, decode = report.hosts[0], gate_of(report).metrics[0]
    assert (host.state, host.gpu, host.driver) == ("running", "NVIDIA GB10", "580.95.05")
    assert decode.now is not None
    assert (decode.now.mean, decode.now.runs) == (59.2, 3)
    assert (decode.bounds.min, decode.bounds.warn_min) == (50, 56)
    assert decode.baseline is not None
    assert (decode.baseline.value, decode.baseline.name) == (59.22, "vllm-mxfp4-single-stream")
    assert decode.last_good is not None
    assert decode.last_good.mean == 58.0
    assert len(host.services[0].history) == 2


def test_a_fleets_own_baseline_comes_before_the_catalogs(fleet: Fleet, tmp_path: Path) -> None:
    own = CATALOG.baselines["vllm-mxfp4-single-stream"].model_copy(
        update={"figures": {DECODE: Published(value=61.0, unit="tok/s")}, "gate": None}
    )
    report = fleet_report(
        fleet,
        Measured(services={"spark-1/gpt-oss": measured()}),
        lambda _host, _service: ServiceRecord(),
        CATALOG,
        generated="2026-11-30T05:10:00Z",
        baselines={"fast": own},
    )
    decode, prefill = gate_of(report).metrics
    assert decode.baseline is not None
    assert (decode.baseline.name, decode.baseline.value) == ("fast", 61.0)
    assert prefill.baseline is not None
    assert prefill.baseline.name == "vllm-mxfp4-single-stream"


def test_figures_from_the_controller_stand_beside_their_own_kind_alone(fleet: Fleet, tmp_path: Path) -> None:
    first = measured(decode=58.0)
    there = measured("bbbbbbbbbbbb", decode=51.0, day=2).model_copy(update={"client": "controller"})
    for one in (first, there):
        note_gate(fleet.name, one, judgement(Verdict.PASS), last_good=one.release, root=tmp_path)
    report = reported(fleet, tmp_path, there)
    assert gate_of(report).metrics[0].last_good is None
    assert [point.release for point in report.hosts[0].services[0].history] == ["bbbbbbbbbbbb"]


def test_what_failed_before_is_no_last_good(fleet: Fleet, tmp_path: Path) -> None:
    note_gate(
        fleet.name, measured(decode=31.6, verdict=Verdict.FAIL), judgement(Verdict.FAIL), last_good=None, root=tmp_path
    )
    now = measured("bbbbbbbbbbbb", day=2)
    note_gate(fleet.name, now, judgement(Verdict.PASS), last_good="bbbbbbbbbbbb", root=tmp_path)
    assert gate_of(reported(fleet, tmp_path, now)).metrics[0].last_good is None


def test_the_noted_verdict_of_a_figure_stands(fleet: Fleet, tmp_path: Path) -> None:
    now = measured(decode=57.0, verdict=Verdict.FAIL)
    note_gate(
        fleet.name,
        now,
        judgement(Verdict.FAIL, "3.7 % worse than the last good release"),
        last_good=None,
        root=tmp_path,
    )
    decode = gate_of(reported(fleet, tmp_path, now)).metrics[0]
    assert (decode.verdict, decode.reason) == (Verdict.FAIL, "3.7 % worse than the last good release")


def test_without_a_note_the_fixed_bounds_judge(fleet: Fleet, tmp_path: Path) -> None:
    decode = gate_of(reported(fleet, tmp_path, measured(decode=31.6, verdict=Verdict.FAIL))).metrics[0]
    assert (decode.verdict, decode.reason) == (Verdict.FAIL, "below 50")


def test_a_gated_figure_that_is_missing_is_shown_as_not_measured(fleet: Fleet, tmp_path: Path) -> None:
    half = measured(verdict=Verdict.FAIL).model_copy(update={"metrics": {}})
    decode = gate_of(reported(fleet, tmp_path, half)).metrics[0]
    assert decode.now is None
    assert decode.verdict is Verdict.FAIL
    assert "not measured" in decode.reason


def test_causes_and_telemetry_are_kept(fleet: Fleet, tmp_path: Path) -> None:
    now = measured(decode=11.0, verdict=Verdict.FAIL)
    cause = Cause("low-power-state", "low-power state", "it is slow", "unplug it", ("clock 611 MHz",))
    note_gate(
        fleet.name,
        now,
        judgement(Verdict.FAIL),
        last_good=None,
        telemetry={"clock_mhz": [611.0, None]},
        causes=[cause],
        workload="llama-benchy --pp 2048",
        root=tmp_path,
    )
    gate = gate_of(reported(fleet, tmp_path, now))
    assert gate.causes[0].cause == "low-power state"
    assert gate.telemetry == {"clock_mhz": (611.0, None)}
    assert gate.workload == "llama-benchy --pp 2048"


def test_memory_and_state_are_kept_beside(fleet: Fleet, tmp_path: Path) -> None:
    memory = MemoryReport(parts=(MemoryPart(name="weights", bytes=1),), machine_bytes=2)
    note_gate(fleet.name, measured(), judgement(Verdict.PASS), last_good=None, root=tmp_path)
    note_memory(fleet.name, "spark-1", "gpt-oss", memory, tmp_path)
    note_state(fleet.name, "spark-1", "gpt-oss", "failed", tmp_path)
    service = reported(fleet, tmp_path, measured()).hosts[0].services[0]
    assert (service.memory, service.state, len(service.history)) == (memory, "failed", 1)


def test_noting_the_same_again_writes_nothing(fleet: Fleet, tmp_path: Path) -> None:
    note_gate(fleet.name, measured(), judgement(Verdict.PASS), last_good=None, root=tmp_path)
    path = record_file(fleet.name, "spark-1", "gpt-oss", tmp_path)
    before = path.stat().st_ino
    note_gate(fleet.name, measured(), judgement(Verdict.PASS), last_good=None, root=tmp_path)
    assert path.stat().st_ino == before


def test_another_judgement_of_the_same_measurement_replaces_the_former_one() -> None:
    passed, failed = measured(), measured(verdict=Verdict.FAIL)
    history = with_point(with_point((), history_point(passed)), history_point(failed))
    assert [point.verdict for point in history] == [Verdict.FAIL]


def test_history_is_bounded_and_in_order() -> None:
    history = with_point((), history_point(measured(day=9)))
    history = with_point(history, history_point(measured("bbbbbbbbbbbb", day=2)))
    assert [point.release for point in history] == ["bbbbbbbbbbbb", "aaaaaaaaaaaa"]
    many = tuple(history_point(measured(f"{index:012x}")) for index in range(LONGEST_HISTORY))
    assert len(with_point(many, history_point(measured(day=9)))) == LONGEST_HISTORY


def test_a_record_that_can_not_be_read_is_an_empty_one(tmp_path: Path) -> None:
    path = record_file("office", "spark-1", "gpt-oss", tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text("{", encoding="utf-8")
    assert load_record("office", "spark-1", "gpt-oss", tmp_path) == ServiceRecord()


def test_every_form_is_written(fleet: Fleet, tmp_path: Path) -> None:
    report = reported(fleet, tmp_path, measured())
    written = write_all(report, tmp_path / "report")
    assert sorted(path.name for path in (tmp_path / "report").iterdir()) == sorted(written)
    assert FleetReport.model_validate_json(written["report.json"].read_text(encoding="utf-8")) == report
