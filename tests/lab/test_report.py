"""`make report` over the lab: what hosts know, what of it lands in the report, and hosts that do not answer."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from modules.fleet import load_fleet
from modules.reporting.page.write import report_folder
from modules.reporting.report import FleetReport
from tests.lab.lab_driver import Lab, Run
from tests.lab.served import Served

pytestmark = pytest.mark.lab
# Nothing listens there.
_CLOSED_PORT = 9


def report(lab: Lab, fleet: Path, *words: str) -> tuple[Run, FleetReport]:
    """Run it, and read what it wrote."""
    run = lab.tinderbox([sys.executable, "-m", "modules.reporting", *words], fleet=fleet, timeout_s=120)
    assert run.rc == 0, run.text
    written = report_folder(load_fleet(fleet).name) / "report.json"
    return run, FleetReport.model_validate_json(written.read_text(encoding="utf-8"))


def renamed(lab: Lab, name: str, *hosts: str, port: int | None = None) -> Path:
    """A fleet of its own, of which the controller keeps nothing yet; the last host at another port."""

    def change(content: dict[str, Any]) -> None:
        content["fleet"] = name
        content["hosts"] = {host: content["hosts"][host] for host in hosts}
        if port is not None:
            content["hosts"][hosts[-1]]["ssh"]["port"] = port

    return lab.write_fleet(name, change)


def test_a_report_is_made_of_what_the_host_knows(lab: Lab, served: Served) -> None:
    """Of another controller's fleet: nothing but the host remembers its releases and measurements."""
    release = json.loads(lab.ssh(served.host, f"sudo cat /var/lib/tinderbox/ledger/{served.plan.name}/current").stdout)
    stored = json.loads(lab.read(served.host, f"/var/lib/tinderbox/gates/{served.plan.name}/{release['id']}.json"))

    run, found = report(lab, renamed(lab, "report-fresh", served.host))

    (host,) = found.hosts
    (service,) = host.services
    assert (host.state, host.simulated, host.trouble) == ("running", True, None)
    assert (service.release, service.unit) == (release["id"], "active (running)")
    assert [one.event for one in service.releases[-1].events] == [event["event"] for event in release["events"]]
    assert service.gate is not None
    assert service.gate.measured == stored["finished"]
    assert service.history[-1].measured == stored["finished"]
    decode = next(metric for metric in service.gate.metrics if metric.name == "tg128@pp2048 c1")
    assert decode.now is not None
    assert decode.now.mean == stored["report"]["benchmarks"][0]["tg_throughput"]["mean"]
    assert service.gate.telemetry["clock_mhz"] == tuple(stored["samples"]["clock_mhz"])
    assert service.memory is not None
    assert {"weights", "KV cache", "system reserve"} <= {part.name for part in service.memory.parts}
    assert "index.html" in run.stdout
    folder = report_folder(found.fleet)
    assert {path.name for path in folder.iterdir()} >= {"index.html", "junit.xml", "tinderbox.prom"}


def test_a_host_that_does_not_answer_is_shown_as_unknown(lab: Lab, served: Served) -> None:
    run, found = report(lab, renamed(lab, "report-silent", served.host, "spark-2", port=_CLOSED_PORT))

    here, silent = found.hosts
    assert (here.state, silent.state) == ("running", "unknown")
    assert "Could not connect" in (silent.trouble or "")
    assert f"port {_CLOSED_PORT}" in (silent.trouble or "")
    assert "spark-2: Could not connect" in run.stderr
    assert "Not known how it is." in (report_folder(found.fleet) / "index.html").read_text(encoding="utf-8")


def test_a_report_is_made_also_when_no_host_answers(lab: Lab) -> None:
    _, found = report(lab, renamed(lab, "report-none", "spark-2", port=_CLOSED_PORT))

    (silent,) = found.hosts
    assert silent.state == "unknown"
    assert "Could not connect" in (silent.trouble or "")


def test_the_deploy_alone_makes_the_report_in_one_round_trip_a_host(lab: Lab, served: Served, tmp_path: Path) -> None:
    fleet, counted = renamed(lab, "report-deploy", served.host), tmp_path / "counted"
    command = ["env", f"ROUND_TRIPS={counted}", sys.executable, "-m", "benchmarks.counted_pyinfra", "--yes"]
    run = lab.tinderbox([*command, "inventory.py", "deploys/report.py"], fleet=fleet)

    assert run.rc == 0, run.text
    assert int(counted.read_text()) == 1
    assert (report_folder("report-deploy") / "index.html").exists()
