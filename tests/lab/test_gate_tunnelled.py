"""A gate from the controller, by pyinfra, over a real SSH tunnel, to a fake engine that runs on a bare lab host."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from modules.catalog import load_catalog
from modules.fleet import load_fleet
from modules.fleet.plan import host_plan
from modules.release import layout
from tests.lab.fake_engine import write_tokenizer
from tests.lab.gated_fake import ANSWERS
from tests.lab.lab_driver import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]
HOST, COMMIT, UNIT = "spark-2", "c" * 40, "tinderbox-gpt-oss.service"
GATE = {
    "client": "controller",
    "answers": ANSWERS.model_dump(mode="json", exclude_none=True),
    "workload": {"pp": [256], "tg": [32], "runs": 3, "coherence": False, "time_limit_s": 120},
    "most_runs": 3,
    "thresholds": {"tg32@pp256 c1": {"min": 5}},
}
DEPLOY = """\
from pyinfra import host
from modules.fleet.plan import plan_of
from modules.operations.gate import gate_passed
from modules.operations.hostside import hostside_installed
plan = plan_of(host)
(service,) = plan.services
hostside_installed(name="Programs")
gate_passed(name="Gate", plan=service, gate=service.gate, home=plan.settings.weights.home)
"""


def test_a_bare_host_keeps_what_the_controller_measured_of_it(lab: Lab, tmp_path: Path) -> None:
    def change(content: dict[str, Any]) -> None:
        content["hosts"] = {HOST: content["hosts"][HOST]}
        content["defaults"]["services"]["gpt-oss"]["gate"] = GATE

    fleet = lab.write_fleet("gate-tunnelled", change)
    plan = host_plan(load_fleet(fleet).hosts[HOST], load_catalog())
    (service,) = plan.services
    snapshot = layout.snapshot_directory(plan.settings.weights.home, service.model.repository, COMMIT)
    serve = f"\n\nThreadingHTTPServer(('127.0.0.1', {service.service.port}), handler(Behaviour())).serve_forever()\n"
    ledger = "/var/lib/tinderbox/ledger/gpt-oss"
    files = {f"{snapshot}/{path.name}": path.read_text() for path in write_tokenizer(tmp_path / "model").iterdir()} | {
        "/opt/fake_engine.py": Path("tests/lab/fake_engine.py").read_text() + serve,
        f"/etc/systemd/system/{UNIT}": "[Service]\nExecStart=/usr/bin/python3 /opt/fake_engine.py\n",
        f"{ledger}/r1.json": json.dumps({"id": "r1", "release": {"commit": COMMIT}, "files": [], "events": []}),
    }
    for path, text in files.items():
        lab.ssh(HOST, f"sudo mkdir -p {Path(path).parent}")
        lab.write(HOST, path, text)
    lab.ssh(HOST, f"sudo ln -sfn r1.json {ledger}/current; sudo systemctl daemon-reload; sudo systemctl start {UNIT}")
    deploy = lab.layout.folder / "gate_tunnelled.py"
    deploy.write_text(DEPLOY)
    try:
        run = lab.pyinfra(str(deploy), "-y", fleet=fleet)
        assert run.rc == 0, run.text
        stored = json.loads(lab.read(HOST, layout.gate_result_file("gpt-oss", "r1")))
        assert (stored["client"], stored["faults"], stored["judgement"]["verdict"]) == ("controller", [], "PASS")
        assert set(stored["parts"]) == {"answers", "benchy"}
        # By the controller's tools at this end; what was sampled meanwhile is the host's.
        assert "/.tinderbox/.tools/" in stored["parts"]["benchy"][0]["command"][0]
        assert {value for value in stored["samples"]["clock_mhz"] if value is not None} == {2418.0}
        again = lab.pyinfra(str(deploy), "-y", fleet=fleet)
        assert again.rc == 0, again.text
        assert "measuring, since" not in again.text
        assert lab.ssh(HOST, "sudo find /var/lib/tinderbox/gates -name '*.client'").stdout == ""
    finally:
        lab.ssh(HOST, f"sudo systemctl stop {UNIT}; sudo rm -rf {ledger} /var/lib/tinderbox/gates {snapshot}"
                      f" /etc/systemd/system/{UNIT} /opt/fake_engine.py; sudo systemctl daemon-reload")  # fmt: skip
