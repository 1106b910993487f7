"""A gate from the controller, by pyinfra, over a real SSH tunnel, to a fake engine that runs on a bare lab host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.lab.fake_service import fake_services, gate_run
from tests.lab.gated_fake import ANSWERS
from tests.lab.lab_driver import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]
HOST = "spark-2"
GATE = {
    "client": "controller",
    "answers": ANSWERS.model_dump(mode="json", exclude_none=True),
    "workload": {"pp": [256], "tg": [32], "runs": 3, "coherence": False, "time_limit_s": 120},
    "most_runs": 3,
    "thresholds": {"tg32@pp256 c1": {"min": 5}},
}


def test_a_bare_host_keeps_what_the_controller_measured_of_it(lab: Lab, tmp_path: Path) -> None:
    def change(content: dict[str, Any]) -> None:
        content["hosts"] = {HOST: content["hosts"][HOST]}
        content["defaults"]["services"]["gpt-oss"]["gate"] = GATE

    fleet = lab.write_fleet("gate-tunnelled", change)
    with fake_services(lab, fleet, tmp_path, {HOST: 0.004}) as services:
        run = gate_run(lab, fleet)
        assert run.rc == 0, run.text
        stored = services[HOST].stored
        assert (stored["client"], stored["faults"], stored["judgement"]["verdict"]) == ("controller", [], "PASS")
        assert set(stored["parts"]) == {"answers", "benchy"}
        # By the controller's tools at this end; what was sampled meanwhile is the host's.
        assert "/.tinderbox/.tools/" in stored["parts"]["benchy"][0]["command"][0]
        assert {value for value in stored["samples"]["clock_mhz"] if value is not None} == {2418.0}
        again = gate_run(lab, fleet)
        assert again.rc == 0, again.text
        assert "measuring, since" not in again.text
        assert lab.ssh(HOST, "sudo find /var/lib/tinderbox/gates -name '*.client'").stdout == ""
