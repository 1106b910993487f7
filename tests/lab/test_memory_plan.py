"""What a service will take of the memory is reckoned before it is started, and asked for at each start."""

from __future__ import annotations

import json
from typing import Any

import pytest

from modules.release import layout
from tests.lab.lab_driver import Lab
from tests.lab.served import Served

pytestmark = pytest.mark.lab


def test_a_service_that_does_not_fit_is_refused_and_what_serves_goes_on(lab: Lab, served: Served) -> None:
    def ask_for_more_than_there_is(content: dict[str, Any]) -> None:
        content["hosts"] = {served.host: content["hosts"][served.host]}
        services = content["defaults"]["services"]
        services[served.plan.name].setdefault("environment", {})["VLLM_CPU_KVCACHE_SPACE"] = "4000"

    before = served.invocation()
    run = lab.converge(fleet=lab.write_fleet("too-large", ask_for_more_than_there_is))
    assert run.rc == 1, run.text
    for said in ("does not fit into the memory", "GiB short", "What runs was left running", "system reserve"):
        assert said in run.text
    assert served.invocation() == before
    assert served.reply()


def test_each_start_passes_the_memory_gate_with_what_the_plan_needs(lab: Lab, served: Served) -> None:
    needs = json.loads(lab.read(served.host, layout.memory_file(served.plan.name)))["needs"]
    entry = json.loads(lab.read(served.host, f"{layout.STATE}/ledger/{served.plan.name}/current"))
    assert needs == entry["memory_plan"]["start_needs"] > 0
    command = f"sudo journalctl --no-pager --output=cat --unit {served.unit} --grep memory-gate"
    said = lab.ssh(served.host, command).stdout
    assert f"{needs / 1024**3:.1f} GiB are needed" in said
