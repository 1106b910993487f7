"""Real vLLM (CPU build) over two lab hosts, tensor parallel by gloo over the lab's network."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.lab.fake_pair import HEAD_HOST, HOSTS, WORKER_HOST, Pair
from tests.lab.fake_release import by_hand, deploy_file
from tests.lab.lab_driver import Lab
from tests.lab.served import Served

pytestmark = [pytest.mark.lab, pytest.mark.long]
# Its kernels, loads and imports share two cores.
_START_MINUTES = 25
SERVICE = "gpt-oss"
_SENTENCE = "A small spark lights the tinder"


@pytest.fixture(scope="module")
def fleet(lab: Lab) -> Path:
    """The lab's usual service, over both hosts; one of them makes the image."""

    def change(content: dict[str, Any]) -> None:
        content["fleet"] = "vllm-pair"
        content["hosts"] = {host: content["hosts"][host] for host in HOSTS}
        for host in HOSTS:
            settings = content["hosts"][host].setdefault("settings", {})
            settings["network"] = {"peer_address": lab.address(host)}
        content["defaults"]["image"] = {"builder": HEAD_HOST}
        service = content["defaults"]["services"][SERVICE]
        service.pop("gate", None)
        service |= {"cluster": {"hosts": list(HOSTS)}, "profile": "latency", "watchdog": {"every_s": 120, "checks": 3}}
        service["readiness"] = {"start_minutes": _START_MINUTES}

    return lab.write_fleet("vllm-pair", change)


def test_one_vllm_spans_both_hosts_and_is_one_service(lab: Lab, fleet: Path) -> None:
    run = lab.pyinfra(str(deploy_file(lab)), "-y", "--json", fleet=fleet, timeout_s=3000)
    assert run.rc == 0, run.text
    pair = Pair(lab, SERVICE)
    before = pair.agreed("active")
    assert before.current == before.last_good != "none"
    assert _SENTENCE in Served(lab, fleet, HEAD_HOST).reply()
    log = lab.ssh(WORKER_HOST, f"sudo docker logs tinderbox-{SERVICE} 2>&1").stdout
    assert "headless" in log
    assert "Worker_TP1" in log

    invocations = [pair.invocation(host) for host in HOSTS]
    lab.ssh(WORKER_HOST, f"sudo kill -9 $(sudo docker inspect -f '{{{{.State.Pid}}}}' tinderbox-{SERVICE})")
    deadline = time.monotonic() + 180
    while any(pair.invocation(host) == old for host, old in zip(HOSTS, invocations, strict=True)):
        assert time.monotonic() < deadline, pair.journals()
        time.sleep(2)
    side = pair.agreed("active", within_s=60 * _START_MINUTES)
    assert f"the part on {WORKER_HOST} has ended" in side.events
    assert _SENTENCE in Served(lab, fleet, HEAD_HOST).reply()

    stopped = by_hand(lab, "stop", fleet)
    assert stopped.rc == 0, stopped.text
    assert pair.agreed("inactive").enabled == "disabled"
