"""A gate whose client runs on the controller: the real vLLM over a real SSH tunnel, in the results of its host."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from modules.catalog import load_catalog
from modules.fleet.lock import lock_path
from modules.release.layout import gate_result_file
from tests.lab.lab_driver import Lab, Run
from tests.lab.served import Served

pytestmark = [pytest.mark.lab, pytest.mark.long]
HOST = "spark-1"
GATE = load_catalog().gates["lab-cpu"].model_copy(update={"client": "controller", "cold_start": True})


@pytest.fixture(scope="module")
def from_here(lab: Lab, main_fleet: Path, first_run: Run) -> Iterator[tuple[Path, Run, dict[str, Any]]]:
    """The lab's ordinary gate, but from the controller: its fleet file, its run, and the result on the host."""

    def change(content: dict[str, Any]) -> None:
        content["hosts"] = {HOST: content["hosts"][HOST]}
        document = GATE.model_dump(mode="json", exclude_none=True, exclude={"source"})
        content["defaults"]["services"]["gpt-oss"]["gate"] = document

    fleet = lab.write_fleet("gate-controller", change)
    # What tags stand for is known, as after a fleet's first run: else its first whole run would ask for that.
    lock_path(fleet).write_text(lock_path(main_fleet).read_text())
    served = Served(lab, fleet, HOST)
    served.await_ready()
    run = lab.converge("deploys/gate.py", fleet=fleet, timeout_s=2400)
    assert run.rc == 0, run.text
    yield fleet, run, json.loads(lab.read(HOST, gate_result_file(served.plan.name, served.release())))
    # The other tests expect what its own gate has measured.
    lab.converge("deploys/gate.py", fleet=main_fleet)


def test_the_host_keeps_what_the_controller_measured(from_here: tuple[Path, Run, dict[str, Any]]) -> None:
    _, run, stored = from_here
    assert "from the controller" in run.text
    assert (stored["client"], stored["faults"]) == ("controller", [])
    assert set(stored["parts"]) == {"cold_start", "answers", "benchy"}
    assert stored["judgement"]["verdict"] in {"PASS", "WARN"}
    # The engine saw what the client on the other side counted.
    (answers,) = stored["parts"]["answers"]
    assert answers["counted_by_engine"]["generation_tokens"] == answers["generated_tokens"]
    for benchy in stored["parts"]["benchy"]:
        # The client ran at this end of a tunnel, by the controller's own tools.
        assert "/.tinderbox/.tools/" in benchy["command"][0]
        (asked,) = GATE.workload.tg
        assert benchy["counted_by_engine"]["generation_tokens"] == (benchy["runs"] + 1) * asked + 2
    assert {value for value in stored["samples"]["clock_mhz"] if value is not None} == {2418.0}
    assert max(value for value in stored["samples"]["requests_running"] if value is not None) >= 1


def test_it_is_not_measured_again_and_never_taken_for_the_hosts_own(
    lab: Lab, main_fleet: Path, from_here: tuple[Path, Run, dict[str, Any]]
) -> None:
    fleet, _, stored = from_here
    again = lab.converge(fleet=fleet)
    assert again.rc == 0, again.text
    assert "no change on any host" in again.stderr
    run = lab.converge(fleet=main_fleet)
    assert run.rc == 0, run.text
    assert "the workload is another one than was measured" in run.text
    own = json.loads(lab.read(HOST, gate_result_file("gpt-oss", stored["release"])))
    assert (own["client"], own["workload_id"] != stored["workload_id"]) == ("host", True)
    # Nothing is left behind, neither of the tunnel nor of the waiting job.
    assert lab.ssh(HOST, "sudo find /var/lib/tinderbox/gates -name '*.client'").stdout == ""
