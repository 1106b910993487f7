"""Every alert fires when it should, clears when that is over, and stays silent beside what looks like it.

By promtool of Debian's Prometheus over made series, minute by minute: no host is needed for that.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from modules.lab.pieces.make_all import make_all
from modules.lab.pieces.monitoring import PROMTOOL, monitoring
from modules.lab.progress import Progress
from modules.monitoring.alerts import alerts_of
from modules.monitoring.configuration import configuration_files
from modules.monitoring.rules import rules
from modules.monitoring.targets import Watched, WatchedHost, WatchedService
from modules.spec.monitoring import Alerts, Prometheus

pytestmark = pytest.mark.lab
HOST = 'fleet="office",host="spark-1"'
SERVICE = f'{HOST},service="gpt-oss"'
SEEN = Watched(
    "office", (WatchedHost("spark-1", "10.0.0.11:9100", False, (WatchedService("spark-1", "gpt-oss", 1200, True),)),)
)
# Short spans, so that a few hours of made series hold all three phases.
BOUNDS = Alerts(gate_age_days=0.04, nightly_hours=1.0)
WELL, ILL, AFTER = 20, 150, 80
END = WELL + ILL + AFTER
MINUTE = 60
GIB = 1024**3
Values = list[float | None]


def phases(well: float | None, ill: float | None) -> Values:
    """Well, then ill, then well again."""
    return [well] * WELL + [ill] * ILL + [well] * AFTER


def fresh(stops: bool = True) -> Values:
    """A time stamp that follows the clock, but for the ill phase."""
    return [float(MINUTE * (WELL if stops and WELL <= at < WELL + ILL else at)) for at in range(END)]


def counter(step_every: int) -> Values:
    """Counts on in the ill phase."""
    steps = [max(0, min(at, WELL + ILL) - WELL) // step_every for at in range(END)]
    return [float(step) for step in steps]


UP, READY = f"up{{{HOST}}}", f"tinderbox_service_ready{{{SERVICE}}}"
COLLECTED = f"tinderbox_collected_timestamp_seconds{{{HOST}}}"
CLOCK, BUSY = f'tinderbox_gpu_sm_clock_hertz{{{HOST},gpu="0"}}', f'tinderbox_gpu_utilization_ratio{{{HOST},gpu="0"}}'
AVAILABLE, RESERVE = f"tinderbox_memory_available_bytes{{{HOST}}}", f"tinderbox_memory_reserve_bytes{{{HOST}}}"
DISK = f'{HOST},mountpoint="/",fstype="ext4"'
CHECKED = 'tinderbox_nightly_last_run_timestamp_seconds{fleet="office"}'


@dataclass(frozen=True)
class Case:
    """`fires`: in the ill phase; where not, it must never."""

    alert: str
    what: str
    series: dict[str, Values]
    fires: bool = True


def verdict(one: str) -> str:
    return f'tinderbox_gate_verdict{{{SERVICE},verdict="{one}"}}'


CASES = (
    Case("HostAbsent", "it does not answer", {UP: phases(1, 0)}),
    Case("HostAbsent", "nobody asks it any more", {UP: phases(1, None)}),
    Case("ExporterAbsent", "its figures go out of date", {UP: phases(1, 1), COLLECTED: fresh()}),
    Case(
        "ExporterAbsent",
        "its figures are gone",
        {UP: phases(1, 1), COLLECTED: [None if WELL <= at < WELL + ILL else float(MINUTE * at) for at in range(END)]},
    ),
    Case(
        "ExporterAbsent",
        "the host is gone, which is told elsewhere",
        {UP: phases(1, 0), COLLECTED: fresh()},
        fires=False,
    ),
    Case("SourceUnreadable", "nvidia-smi fails", {f'tinderbox_source_up{{{HOST},source="nvidia-smi"}}': phases(1, 0)}),
    Case("EngineNotReady", "it is not", {UP: phases(1, 1), READY: phases(1, 0)}),
    Case(
        "EngineNotReady",
        "nobody knows",
        {
            UP: phases(1, 1),
            READY: phases(1, None),
            f'tinderbox_service_state{{{SERVICE},state="unknown"}}': phases(0, 1),
        },
    ),
    Case("EngineNotReady", "nothing is told of it", {UP: phases(1, 1), READY: phases(1, None)}),
    Case(
        "EngineNotReady",
        "a start of twenty minutes",
        {UP: phases(1, 1), READY: [*phases(1, 1)[: END - 20], *[0.0] * 20]},
        fires=False,
    ),
    Case("ServiceFailed", "it has", {f'tinderbox_service_state{{{SERVICE},state="failed"}}': phases(0, 1)}),
    Case("RestartLoop", "systemd restarts it", {f"tinderbox_service_restarts_total{{{SERVICE}}}": counter(5)}),
    Case("RestartLoop", "the watchdog restarts it", {f"tinderbox_watchdog_restarts_total{{{SERVICE}}}": counter(20)}),
    Case(
        "RestartLoop",
        "one restart in four hours",
        {f"tinderbox_service_restarts_total{{{SERVICE}}}": counter(ILL)},
        fires=False,
    ),
    Case("EngineSilent", "it tells nothing", {f"tinderbox_engine_up{{{SERVICE}}}": phases(1, 0), READY: phases(1, 1)}),
    Case(
        "EngineSilent",
        "it is not ready",
        {f"tinderbox_engine_up{{{SERVICE}}}": phases(1, 0), READY: phases(1, 0)},
        fires=False,
    ),
    Case("LoadStopped", "the load guard acts", {f"tinderbox_load_guard_stops_total{{{SERVICE}}}": counter(20)}),
    Case(
        "MemoryBelowReserve",
        "little is left",
        {AVAILABLE: phases(40 * GIB, 7 * GIB), RESERVE: phases(8 * GIB, 8 * GIB)},
    ),
    Case("ClocksStuckLow", "busy at 507 MHz", {CLOCK: phases(2418e6, 507e6), BUSY: phases(0.96, 0.96)}),
    Case("ClocksStuckLow", "idle at 208 MHz", {CLOCK: phases(2418e6, 208e6), BUSY: phases(0.96, 0.0)}, fires=False),
    Case(
        "ClocksStuckLow",
        "96 % at 2489 MHz and 42 W",
        {CLOCK: phases(2489e6, 2489e6), BUSY: phases(0.0, 0.96)},
        fires=False,
    ),
    Case("GpuHot", "it is", {f'tinderbox_gpu_temperature_celsius{{{HOST},gpu="0"}}': phases(60, 91)}),
    Case(
        "DiskNearlyFull",
        "it is",
        {
            f"node_filesystem_avail_bytes{{{DISK}}}": phases(50, 5),
            f"node_filesystem_size_bytes{{{DISK}}}": phases(100, 100),
        },
    ),
    Case("GateFailed", "it has", {verdict("FAIL"): phases(0, 1)}),
    Case("GateMissing", "never measured", {verdict("MISSING"): phases(0, 1)}),
    Case("GateOld", "measured long ago", {f"tinderbox_gate_measured_timestamp_seconds{{{SERVICE}}}": fresh()}),
    Case(
        "Drift",
        "it could not be looked at",
        {'tinderbox_drift_unknown_hosts{fleet="office"}': phases(0, 1)},
    ),
    Case("Drift", "it differs", {'tinderbox_drift_hosts{fleet="office"}': phases(0, 3)}),
    Case("NightlyCheckMissing", "the last is old", {CHECKED: fresh()}),
    Case(
        "NightlyCheckMissing",
        "there is none",
        {CHECKED: [None if WELL <= at < WELL + ILL else float(MINUTE * at) for at in range(END)]},
    ),
)


@pytest.fixture(scope="module")
def promtool() -> Path:
    piece = monitoring()
    make_all([piece], Progress())
    return piece.path / PROMTOOL


def counted(alert: str, minute: int, firing: bool) -> dict[str, object]:
    expression = f'count(ALERTS{{alertname="Tinderbox{alert}",alertstate="firing"}})'
    expected = [{"labels": "{}", "value": 1}] if firing else []
    return {"expr": expression, "eval_time": f"{minute}m", "exp_samples": expected}


def test_every_alert_has_a_case_in_which_it_fires() -> None:
    names = {alert.name.removeprefix("Tinderbox") for alert in alerts_of(SEEN, BOUNDS)}
    assert {case.alert for case in CASES if case.fires} == names


def test_alerts_fire_and_clear(promtool: Path, tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(rules(SEEN, BOUNDS)))
    tests = [
        {
            "name": f"{case.alert}: {case.what}",
            "interval": "1m",
            "input_series": [
                {"series": name, "values": " ".join("_" if value is None else f"{value:g}" for value in values)}
                for name, values in case.series.items()
            ],
            "promql_expr_test": [
                counted(case.alert, WELL - 1, firing=False),
                counted(case.alert, WELL + ILL - 1, firing=case.fires),
                counted(case.alert, END - 1, firing=False),
            ],
        }
        for case in CASES
    ]
    document = {"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": tests}
    (tmp_path / "tests.yml").write_text(yaml.safe_dump(document))
    done = subprocess.run(
        [promtool, "test", "rules", "tests.yml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_wrong_expectation_is_found(promtool: Path, tmp_path: Path) -> None:
    """The test above can fail: an alert that is not there is missed."""
    document = rules(SEEN, BOUNDS)
    document["groups"][1]["rules"] = [one for one in document["groups"][1]["rules"] if one["alert"] != "TinderboxDrift"]
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(document))
    test = {
        "interval": "1m",
        "input_series": [{"series": 'tinderbox_drift_hosts{fleet="office"}', "values": "3x20"}],
        "promql_expr_test": [counted("Drift", 15, firing=True)],
    }
    (tmp_path / "tests.yml").write_text(
        yaml.safe_dump({"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": [test]})
    )
    done = subprocess.run(
        [promtool, "test", "rules", "tests.yml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0


def test_the_whole_configuration_passes_promtool(promtool: Path, tmp_path: Path) -> None:
    prometheus = Prometheus(alertmanagers=("https://alerts.example:9093/am",))
    for name, text in configuration_files(prometheus, SEEN, BOUNDS).items():
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        [promtool, "check", "config", tmp_path / "prometheus.yml"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
