"""The shell example of docs/ci, over a host that serves: all four steps pass, and what differs makes it fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from modules.lab.layout import ROOT
from tests.lab.lab_driver import Lab, Run
from tests.lab.served import Served

pytestmark = [pytest.mark.lab, pytest.mark.long]
HOST = "spark-1"
UNIT = "/etc/systemd/system/tinderbox-gpt-oss.service"


def ci(lab: Lab, fleet: Path, *steps: str) -> Run:
    return lab.tinderbox(["sh", "docs/ci/ci.sh", str(fleet), *steps], fleet=fleet, timeout_s=1500)


@pytest.mark.usefixtures("served")
def test_all_four_steps_pass_over_a_host_that_is_as_it_should_be(lab: Lab, main_fleet: Path) -> None:
    run = ci(lab, main_fleet)
    assert run.rc == 0, run.text
    ended = [line for line in run.stderr.splitlines() if line.startswith("== ") and " ended with " in line]
    assert ended == [f"== {step} ended with 0" for step in ("lint", "verify", "drift", "gate")]
    drift = json.loads((ROOT / "reports/ci/drift.json").read_text())
    assert drift["hosts"][HOST]["state"] == "same"
    assert "<testsuite" in (ROOT / "reports/ci/verify.xml").read_text()


def test_what_differs_makes_it_fail_and_the_step_after_it_runs(lab: Lab, main_fleet: Path, served: Served) -> None:
    lab.ssh(HOST, f"sudo sh -c 'echo \"# mine\" >> {UNIT}'")
    try:
        run = ci(lab, main_fleet, "drift", "lint")
        assert run.rc == 2, run.text
        assert "== drift ended with 2\n== lint" in run.stderr
        things = json.loads((ROOT / "reports/ci/drift.json").read_text())["hosts"][HOST]["differences"]
        assert f"unit {Path(UNIT).name}" in [one["thing"] for one in things]
    finally:
        lab.ssh(HOST, f"sudo sed -i '/^# mine$/d' {UNIT} && sudo systemctl daemon-reload")
    assert served.reply()
