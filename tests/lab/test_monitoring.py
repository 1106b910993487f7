"""A host with a real vLLM, watched by Debian's Prometheus: panels have data, alerts fire and clear, all can go again.

The GPU is simulated, and so are the figures of it. The gateway's panels are asked for in test_monitoring_gateway.py.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from modules.monitoring.alerts import alerts_of
from modules.monitoring.dashboards import dashboards, queries
from modules.monitoring.targets import Watched
from modules.spec.monitoring import Alerts
from tests.lab.lab_driver import Lab
from tests.lab.served import Served
from tests.lab.watched_host import WatchedHost, awaited, debian_packages

pytestmark = [pytest.mark.lab, pytest.mark.long]
HOST, SERVICE = "spark-1", "gpt-oss"
METRICS = "/var/lib/tinderbox/metrics"
APPS = [[4711, "VLLM::EngineCor", 89093]]
MEMORY = f"/etc/tinderbox/{SERVICE}.memory.json"


@pytest.fixture(scope="module")
def eyes(lab: Lab, first_run: object) -> Iterator[WatchedHost]:
    """The host that serves, with all that watches it."""
    found = WatchedHost(lab, HOST)
    with debian_packages(lab, HOST):
        run = lab.converge(fleet=found.watched())
        assert run.rc == 0, run.text
        yield found
        found.settle(found.fleet("plain", None))


@pytest.fixture
def quiet(eyes: WatchedHost) -> None:
    """Nothing fires but what nobody has told of yet."""
    eyes.await_clear(*(set(eyes.firing()) - {"NightlyCheckMissing"}))


def test_a_second_run_changes_nothing(eyes: WatchedHost) -> None:
    run = eyes.settle(eyes.watched())
    assert run.json["results"]["totals"]["success"] == 0


def test_what_is_told_reads_strictly_and_is_told_on_loopback_alone(eyes: WatchedHost) -> None:
    said = eyes.lab.ssh(HOST, "curl -s http://127.0.0.1:9100/metrics").stdout
    names = {family.name for family in text_string_to_metric_families(said)}
    assert names >= {
        "tinderbox_simulated",
        "tinderbox_gate_figure",
        "vllm:time_to_first_token_seconds",
        "node_memory_MemAvailable_bytes",
    }
    assert "node_textfile_scrape_error 0\n" in said
    listening = [line.split()[3] for line in eyes.lab.ssh(HOST, "sudo ss -ltnH").stdout.splitlines()]
    ours = sorted(place for place in listening if place.endswith((":9100", ":9090")))
    assert ours == ["127.0.0.1:9090", "127.0.0.1:9100"]


def test_the_query_of_every_panel_has_data(eyes: WatchedHost, served: Served) -> None:
    asked = [(one["uid"], title, text) for one in dashboards(eyes.lab.layout.name) for title, text in queries(one)]
    assert len(asked) > 50

    def empty() -> list[tuple[str, str]]:
        served.reply()
        return [(uid, title) for uid, title, text in asked if not eyes.series(filled(text))]

    def filled(text: str) -> str:
        return text.replace("$__rate_interval", "1m").replace("$fleet", eyes.lab.layout.name).replace("$host", HOST)

    with eyes.lab.gpu(HOST, compute_apps=APPS):
        missing = empty()
        for _ in range(6):
            if not missing:
                break
            time.sleep(5)
            missing = empty()
    assert missing == []
    (simulated,) = eyes.series("tinderbox_simulated")
    assert simulated["value"][1] == "1"


@contextmanager
def stopped(eyes: WatchedHost, unit: str) -> Iterator[None]:
    eyes.lab.ssh(HOST, f"sudo systemctl stop {unit}")
    try:
        yield
    finally:
        eyes.lab.ssh(HOST, f"sudo systemctl start {unit}", timeout_s=600)


@contextmanager
def edited(eyes: WatchedHost, path: str, change: Callable[[str], str]) -> Iterator[None]:
    before = eyes.lab.read(HOST, path)
    eyes.lab.write(HOST, path, change(before))
    try:
        yield
    finally:
        eyes.lab.write(HOST, path, before)


@contextmanager
def moved_away(eyes: WatchedHost, path: str) -> Iterator[None]:
    eyes.lab.ssh(HOST, f"sudo mv {path} {path}.away")
    try:
        yield
    finally:
        eyes.lab.ssh(HOST, f"sudo mv {path}.away {path}")


def gate_file(eyes: WatchedHost) -> str:
    return eyes.lab.ssh(HOST, f"sudo readlink /var/lib/tinderbox/ledger/{SERVICE}/current").stdout.strip()


@contextmanager
def gate_failed(eyes: WatchedHost) -> Iterator[None]:
    def fail(text: str) -> str:
        stored = json.loads(text)
        stored["judgement"]["verdict"] = "FAIL"
        return json.dumps(stored)

    with edited(eyes, f"/var/lib/tinderbox/gates/{SERVICE}/{gate_file(eyes)}", fail):
        yield


@contextmanager
def silent(eyes: WatchedHost) -> Iterator[None]:
    """The exporter asks at a wrong place, until the next run repairs it."""
    path = "/etc/tinderbox/monitoring.json"
    eyes.lab.write(HOST, path, eyes.lab.read(HOST, path).replace(":8000", ":8001"))
    eyes.lab.ssh(HOST, "sudo systemctl restart tinderbox-exporter")
    yield
    assert eyes.settle(eyes.watched()).json["results"]["totals"]["success"] == 1


MADE: dict[str, Callable[[WatchedHost], AbstractContextManager[None]]] = {
    "HostAbsent": lambda eyes: stopped(eyes, "prometheus-node-exporter"),
    "ExporterAbsent": lambda eyes: stopped(eyes, "tinderbox-exporter"),
    "SourceUnreadable": lambda eyes: eyes.lab.gpu(HOST, fails_with="NVIDIA-SMI has failed"),
    "ClocksStuckLow": lambda eyes: eyes.lab.gpu(HOST, **{"clocks.current.sm": 507, "utilization.gpu": 96}),
    "GpuHot": lambda eyes: eyes.lab.gpu(HOST, **{"temperature.gpu": 91}),
    "GateFailed": gate_failed,
    "GateMissing": lambda eyes: moved_away(eyes, f"/var/lib/tinderbox/gates/{SERVICE}/{gate_file(eyes)}"),
    "EngineSilent": silent,
}
# Of the service as well, and so with its name.
OF_A_SERVICE = {
    "GateFailed",
    "GateMissing",
    "EngineSilent",
    "EngineNotReady",
    "ServiceFailed",
    "RestartLoop",
    "GateOld",
    "LoadStopped",
}


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("name", MADE)
def test_an_alert_fires_and_clears(eyes: WatchedHost, name: str) -> None:
    with MADE[name](eyes):
        fired = eyes.await_alert(name)
        words = fired["annotations"]["summary"]
        assert HOST in words
        assert SERVICE in words or name not in OF_A_SERVICE
    eyes.await_clear(name)


@pytest.mark.usefixtures("quiet")
def test_bounds_that_nothing_keeps_fire_after_a_reload_and_clear_after_the_next(eyes: WatchedHost) -> None:
    before = eyes.lab.ssh(HOST, "systemctl show -P MainPID prometheus").stdout
    total = int(eyes.series("tinderbox_memory_total_bytes")[0]["value"][1])
    eyes.settle(eyes.watched(memory_reserve_gib=2 * total / 1024**3, gate_age_days=1e-6, disk_free_ratio=0.999))
    for name in ("MemoryBelowReserve", "GateOld", "DiskNearlyFull"):
        assert HOST in eyes.await_alert(name)["annotations"]["summary"]
    eyes.settle(eyes.watched())
    eyes.await_clear("MemoryBelowReserve", "GateOld", "DiskNearlyFull")
    assert eyes.lab.ssh(HOST, "systemctl show -P MainPID prometheus").stdout == before


def test_drift_and_the_nightly_check_by_what_they_leave(eyes: WatchedHost) -> None:
    eyes.await_alert("NightlyCheckMissing")
    fleet = eyes.lab.layout.name

    def leave(hosts: int) -> None:
        figures = {"drift_hosts": hosts, "drift_unknown_hosts": 0, "nightly_last_run_timestamp_seconds": time.time()}
        lines = [f'tinderbox_{name}{{fleet="{fleet}"}} {value:.0f}\n' for name, value in figures.items()]
        eyes.lab.write(HOST, f"{METRICS}/nightly.prom", "".join(lines))

    leave(3)
    assert f"fleet {fleet}: 3 host(s)" in eyes.await_alert("Drift")["annotations"]["summary"]
    eyes.await_clear("NightlyCheckMissing")
    leave(0)
    eyes.await_clear("Drift")
    eyes.lab.ssh(HOST, f"sudo rm {METRICS}/nightly.prom")


@pytest.mark.usefixtures("quiet")
def test_a_server_that_is_stopped_and_one_that_crashes_again_and_again(eyes: WatchedHost, served: Served) -> None:
    eyes.lab.ssh(HOST, f"sudo systemctl stop {served.unit}")
    assert SERVICE in eyes.await_alert("EngineNotReady")["annotations"]["summary"]
    eyes.lab.ssh(HOST, f"sudo systemctl start --no-block {served.unit}")

    def ended() -> bool:
        eyes.lab.ssh(HOST, f"sudo docker kill {served.container}", check=False)
        return served.state() == "failed"

    # Each stop waits for the memory to come back, for a minute at most.
    awaited(ended, "the crash loop does not end", 480)
    for name in ("ServiceFailed", "RestartLoop"):
        assert SERVICE in eyes.await_alert(name)["annotations"]["summary"]
    eyes.lab.ssh(HOST, f"sudo systemctl reset-failed {served.unit}; sudo systemctl start --no-block {served.unit}")
    served.await_ready()
    eyes.await_clear("EngineNotReady", "ServiceFailed", "RestartLoop", patience_s=600)


@pytest.mark.usefixtures("quiet")
def test_a_load_that_leaves_the_system_less_than_its_reserve(eyes: WatchedHost, served: Served) -> None:
    def reserve_more_than_there_is(text: str) -> str:
        total = int(eyes.series("tinderbox_memory_total_bytes")[0]["value"][1])
        return json.dumps({**json.loads(text), "reserve": 8 * total})

    eyes.lab.ssh(HOST, f"sudo systemctl stop {served.unit}")
    with edited(eyes, MEMORY, reserve_more_than_there_is):
        eyes.lab.ssh(HOST, f"sudo systemctl start --no-block {served.unit}")
        assert SERVICE in eyes.await_alert("LoadStopped")["annotations"]["summary"]
        eyes.lab.ssh(HOST, f"sudo systemctl stop {served.unit}")
    eyes.lab.ssh(HOST, f"sudo systemctl reset-failed {served.unit}; sudo systemctl start --no-block {served.unit}")
    served.await_ready()
    eyes.await_clear("LoadStopped", "ServiceFailed", "RestartLoop", "EngineNotReady", patience_s=600)


def test_no_alert_is_left_out() -> None:
    all_of_them = {one.name.removeprefix("Tinderbox") for one in alerts_of(Watched("x", ()), Alerts(nightly_hours=1))}
    elsewhere = {"MemoryBelowReserve", "GateOld", "DiskNearlyFull", "NightlyCheckMissing", "Drift"}
    elsewhere |= {"EngineNotReady", "ServiceFailed", "RestartLoop", "LoadStopped"}
    assert all_of_them == set(MADE) | elsewhere


@pytest.mark.usefixtures("undisturbed")
def test_taken_out_of_the_fleet_file_it_goes_and_what_others_installed_stays(eyes: WatchedHost, tmp_path: Path) -> None:
    plain = eyes.fleet("plain", None)
    eyes.settle(plain)
    there = (
        "sudo ss -ltnH | grep -cE ':(9100|9090) '; ls /etc/systemd/system | grep -E 'tinderbox-exporter|prometheus';"
        f" ls /etc/tinderbox | grep -E 'prometheus|monitoring'; ls {METRICS};"
        " dpkg-query -W -f '${db:Status-Status}\\n' prometheus prometheus-node-exporter 2>/dev/null | grep -x installed"
    )
    left = eyes.lab.ssh(HOST, there, check=False).stdout.split()
    assert left == ["0"]
    assert eyes.settle(plain).json["results"]["totals"]["success"] == 0

    eyes.lab.ssh(HOST, "sudo apt-get install -y --no-install-recommends prometheus-node-exporter", timeout_s=600)
    unit = "systemctl cat prometheus-node-exporter | sha256sum; systemctl show -P MainPID prometheus-node-exporter"
    before = eyes.lab.ssh(HOST, unit).stdout
    refused = eyes.settle(eyes.watched(), rc=1)
    assert f"{HOST}: prometheus-node-exporter was on this host before Tinderbox" in refused.text
    assert eyes.lab.ssh(HOST, unit).stdout == before
    eyes.lab.ssh(HOST, "sudo apt-get purge -y prometheus-node-exporter", timeout_s=600)
    assert eyes.settle(eyes.watched()).json["results"]["totals"]["success"] == 1
