"""When a gate measures again, and how a host is held to the others: real hosts, tunnels and client, a fake engine."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from modules.reporting.measured import ROOT
from tests.lab.fake_service import FakeService, fake_services, gate_run
from tests.lab.gated_fake import ANSWERS
from tests.lab.lab_driver import Lab, Run

pytestmark = [pytest.mark.lab, pytest.mark.long]
FLEET, ONE, SLOW = "gate-rules", "spark-1", "spark-4"
DECODE = "tg32@pp256 c1"
# Half as fast as the others.
SPEEDS = {"spark-1": 0.02, "spark-2": 0.02, "spark-3": 0.02, SLOW: 0.04}
GATE: dict[str, Any] = {
    "client": "controller",
    "answers": ANSWERS.model_dump(mode="json", exclude_none=True),
    "workload": {"pp": [256], "tg": [32], "runs": 3, "coherence": False, "time_limit_s": 120},
    "most_runs": 3,
}
LOOSE = {DECODE: {"min": 1}}


@dataclass(frozen=True)
class Rig:
    """Four bare hosts that serve."""

    lab: Lab
    services: dict[str, FakeService]

    def fleet(self, *hosts: str, **gate: Any) -> Path:
        """The fleet file with these hosts and such a gate."""
        return write_fleet(self.lab, hosts, {**GATE, **gate})

    def run(self, *hosts: str, rc: int = 0, asked: bool = False, **gate: Any) -> Run:
        """A run over these hosts."""
        done = gate_run(self.lab, self.fleet(*hosts, **gate), asked=asked)
        assert done.rc == rc, done.text
        return done


def write_fleet(lab: Lab, hosts: tuple[str, ...], gate: dict[str, Any]) -> Path:
    def change(content: dict[str, Any]) -> None:
        content["fleet"] = FLEET
        content["hosts"] = {host: content["hosts"][host] for host in hosts}
        content["defaults"]["services"]["gpt-oss"]["gate"] = gate

    return lab.write_fleet(FLEET, change)


@pytest.fixture(scope="module")
def rig(wide_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """All four, of which the controller knows nothing yet."""
    shutil.rmtree(ROOT / FLEET, ignore_errors=True)
    fleet = write_fleet(wide_lab, tuple(SPEEDS), {**GATE, "thresholds": LOOSE})
    with fake_services(wide_lab, fleet, tmp_path_factory.mktemp("rules"), SPEEDS) as services:
        yield Rig(wide_lab, services)
    shutil.rmtree(ROOT / FLEET, ignore_errors=True)


def why(run: Run) -> str:
    """Why it measured; empty where it did not."""
    found = re.search(r"measuring, since (.+?): (?:about|at most)", run.text)
    return "" if found is None else found[1]


def test_it_measures_once_and_then_for_each_reason_alone(rig: Rig) -> None:
    one = rig.services[ONE]
    assert why(rig.run(ONE, thresholds=LOOSE)) == "this release was never measured"
    first = one.stored
    assert (first["judgement"]["verdict"], first["faults"]) == ("PASS", [])
    assert why(rig.run(ONE, thresholds=LOOSE)) == ""

    # Other thresholds: judged anew, by the runs that there are.
    stricter = {DECODE: {"min": 2}}
    assert why(rig.run(ONE, thresholds=stricter)) == ""
    assert one.stored["finished"] == first["finished"]
    assert one.stored["judgement"]["thresholds"] != first["judgement"]["thresholds"]

    # Another driver, and back again.
    former = first["gpu"]["driver"]
    with rig.lab.gpu(ONE, driver_version="580.142.11"):
        told = why(rig.run(ONE, thresholds=stricter))
        assert told == f"the driver is 580.142.11 now, and was {former} when it was measured"
        assert one.stored["gpu"]["driver"] == "580.142.11"
        assert why(rig.run(ONE, thresholds=stricter)) == ""
    told = why(rig.run(ONE, thresholds=stricter))
    assert told == f"the driver is {former} now, and was 580.142.11 when it was measured"

    # Older than the fleet file allows: the host's result is dated back.
    week: dict[str, Any] = {"thresholds": stricter, "max_age_days": 7}
    assert why(rig.run(ONE, **week)) == ""
    rig.lab.write(ONE, one.result_file, json.dumps({**one.stored, "finished": "2026-01-01T04:45:19Z"}))
    assert why(rig.run(ONE, thresholds=stricter)) == ""
    assert re.fullmatch(r"the result is \d+\.\d days old, and may be 7", why(rig.run(ONE, **week)))
    assert one.stored["finished"] > "2026-01-02"
    assert why(rig.run(ONE, **week)) == ""

    # When asked; and a workload that is another one.
    assert why(rig.run(ONE, asked=True, **week)) == "asked to"
    workload = {**GATE["workload"], "tg": [24]}
    told = why(rig.run(ONE, workload=workload, thresholds={"tg24@pp256 c1": {"min": 1}}))
    assert told == "the workload is another one than was measured"


def test_a_host_is_held_to_the_median_of_the_others(rig: Rig) -> None:
    hosts = tuple(SPEEDS)
    measured = rig.run(*hosts, thresholds=LOOSE)
    speeds = {host: service.stored["parts"]["benchy"][-1] for host, service in rig.services.items()}
    means = {host: part["report"]["benchmarks"][0]["tg_throughput"]["mean"] for host, part in speeds.items()}
    others = sorted(value for host, value in means.items() if host != SLOW)
    assert means[SLOW] < 0.6 * others[1]
    assert measured.text.count("measuring, since") >= 3

    # Nothing is measured again for the sake of another threshold; the slow one is told from the others.
    before = {host: service.stored["finished"] for host, service in rig.services.items()}
    held = rig.run(*hosts, rc=1, thresholds={DECODE: {"fleet": {"fail": 0.3}}})
    assert "measuring, since" not in held.text
    assert {host: service.stored["finished"] for host, service in rig.services.items()} == before
    verdicts = {host: service.stored["judgement"]["verdict"] for host, service in rig.services.items()}
    assert verdicts == {**dict.fromkeys(hosts, "PASS"), SLOW: "FAIL"}
    share = 100 * (1 - means[SLOW] / others[1])
    found = re.search(r"(\d+\.\d) % worse than the median of 3 other hosts", held.text)
    assert found is not None
    assert float(found[1]) == pytest.approx(share, abs=0.2)
    assert f"{SLOW}: gate of gpt-oss failed" in held.text
