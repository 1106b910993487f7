"""What a host has told → its state: what it did not tell stays unknown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from modules.asking.side_by_side import Answer, Silent
from modules.catalog import load_catalog
from modules.fleet import Fleet, load_fleet
from modules.fleet.plan import host_plan
from modules.hostside.status_state import unit_blocks
from modules.status.collect import hosts_of
from modules.status.report import SCHEMA, HostStatus, ServiceStatus, Stranger, schema_text
from modules.status.seen import UnreadableError, document_in
from tests.unit.status_samples import APPS, CONTAINER, GPU, NOW, OTHER, gate, service, told, unit

_GIB = 1024**3
FLEET = """
fleet: office
defaults:
  services:
    gpt-oss: {engine: vllm-mxfp4, model: gpt-oss-120b}
hosts:
  spark-1: {address: 192.0.2.1}
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    path = tmp_path / "office.yaml"
    path.write_text(FLEET)
    return load_fleet(path)


def seen(fleet: Fleet, document: dict[str, Any] | Answer | Silent, before: str | None = None) -> HostStatus:
    answer = document
    if isinstance(document, dict):
        answer = Answer(f"Welcome!\n{json.dumps({'status': document})}\n", "", 0)
    assert not isinstance(answer, dict)
    plans = {"spark-1": host_plan(fleet.hosts["spark-1"], load_catalog())}
    (host,) = hosts_of(fleet, plans, {"spark-1": answer}, {"spark-1": before} if before else {})
    return host


def of(fleet: Fleet, **more: Any) -> ServiceStatus:
    (found,) = seen(fleet, told(**more)).services
    return found


def of_unit(fleet: Fleet, active: str, sub: str, **more: str) -> ServiceStatus:
    name = "tinderbox-gpt-oss.service"
    return of(fleet, units={name: unit(name, active, sub, **more)}, containers=[], pids={}, memory={})


def test_a_service_that_serves(fleet: Fleet) -> None:
    host = seen(fleet, told())
    (found,) = host.services

    assert (host.answers, host.seen, host.root, host.trouble) == (True, "2026-11-30T00:53:20Z", True, None)
    assert (host.memory, host.available, host.swap_used) == (125000000 * 1024, 50000000 * 1024, 600 * 1024)
    assert host.gpu is not None
    assert (host.gpu.clock_mhz, host.gpu.power_w, host.gpu.temperature_c, host.gpu.simulated) == (2418, 31.5, 61, False)
    assert host.strangers == ()
    assert (found.state, found.doing, found.release, found.deployed) == ("running", None, "r2", True)
    assert (found.since, found.for_s) == ("2026-11-29T22:06:40Z", 10_000)
    assert (found.tokens_s, found.prompt_tokens_s, found.window_s) == (120.0, 0.0, 0.5)
    assert (found.running, found.waiting, found.kv_percent) == (2, 1, 41.5)
    assert (found.claim, found.used) == (70 * _GIB, 63 * _GIB)
    assert found.gate is not None
    assert (found.gate.verdict, found.gate.metric, found.gate.figure) == ("PASS", "tg128@pp2048 c1", 54.2)
    assert found.watchdog is not None
    assert (found.watchdog.active, found.watchdog.generated_s, found.watchdog.misses) == (True, 12.0, 0)


@pytest.mark.parametrize(
    ("active", "sub", "state", "doing"),
    [
        ("active", "running", "running", None),
        ("failed", "failed", "failed", None),
        ("activating", "auto-restart", "failed", "starting again"),
        ("activating", "start-post", "stopped", "starting"),
        ("deactivating", "stop-sigterm", "stopped", "stopping"),
        ("inactive", "dead", "stopped", None),
    ],
)
def test_states(fleet: Fleet, active: str, sub: str, state: str, doing: str | None) -> None:
    found = of_unit(fleet, active, sub)
    assert (found.state, found.doing) == (state, doing)


def test_a_service_that_failed_says_why(fleet: Fleet) -> None:
    assert "after 3 restarts" in str(of_unit(fleet, "failed", "failed", NRestarts="3", Result="exit-code").why)
    event = {"at": "2026-11-29T22:00:00Z", "event": "failed to start", "note": "refused: 4 GiB are missing"}
    name = "tinderbox-gpt-oss.service"
    found = of(fleet, units={name: unit(name, "failed", "failed")}, services={"gpt-oss": service(last_event=event)})
    assert found.why == "failed to start at 2026-11-29T22:00:00Z: refused: 4 GiB are missing"


def test_nothing_is_deployed_yet(fleet: Fleet) -> None:
    absent = dict.fromkeys(service())
    units = {"tinderbox-gpt-oss.service": {"Id": "tinderbox-gpt-oss.service", "LoadState": "not-found"}}
    units["tinderbox-gpt-oss.service"] |= {"ActiveState": "inactive", "SubState": "dead"}
    host = seen(fleet, told(programs=None, containers=[], units=units, services={"gpt-oss": absent}, memory={}))
    (found,) = host.services

    assert host.programs == "none"
    assert (found.state, found.deployed, found.since, found.release) == ("stopped", False, None, None)


def test_what_systemd_docker_and_nvidia_smi_do_not_tell_is_unknown(fleet: Fleet) -> None:
    host = seen(
        fleet, told(units=None, containers=None, gpu=None, apps=None, meminfo="", memory={}, ports={"8000": None})
    )
    (found,) = host.services

    assert (host.memory, host.available, host.gpu, host.strangers) == (None, None, None, ())
    assert host.gpu_trouble == "nvidia-smi is not there, or does not end"
    assert (found.state, found.since, found.used) == ("unknown", None, None)
    # The ledger tells that all the same.
    assert found.release == "r2"


def test_a_gpu_that_does_not_answer_is_unknown_and_says_why(fleet: Fleet) -> None:
    host = seen(fleet, told(gpu={"status": 18, "out": "Failed to initialize NVML: Driver/library version mismatch\n"}))
    assert host.gpu is None
    assert host.gpu_trouble == "nvidia-smi: Failed to initialize NVML: Driver/library version mismatch"


def test_a_figure_that_the_gpu_does_not_give_is_unknown(fleet: Fleet) -> None:
    host = seen(
        fleet, told(gpu={"status": 0, "out": GPU.replace("31.50 W", "[N/A]").replace("GB10", "GB10 (simulated)")})
    )
    assert host.gpu is not None
    assert (host.gpu.power_w, host.gpu.temperature_c, host.gpu.simulated) == (None, 61, True)


def test_processes_of_others_are_named(fleet: Fleet) -> None:
    apps = f"{APPS}4242, VLLM::EngineCore, 61440 MiB\n77, python3, 2048 MiB\n78, gone, [N/A]\n"
    pids = {
        "4242": {"name": "VLLM::EngineCor", "container": CONTAINER, "unit": None},
        "77": {"name": "python3", "container": OTHER, "unit": None},
        "79": {"name": "ollama", "container": None, "unit": None},
    }
    containers = [*told()["containers"], {"id": OTHER, "name": "comfy", "service": None, "release": None}]
    host = seen(
        fleet, told(apps={"status": 0, "out": apps}, pids=pids, containers=containers, ports={"8000": [79]})
    )  # fmt: skip
    assert host.strangers == (
        Stranger(where="GPU", pid=77, name="python3", container="comfy", memory=2 * _GIB),
        Stranger(where="GPU", pid=78, name="gone"),
        Stranger(where="port 8000", pid=79, name="ollama"),
    )


def test_an_engine_without_a_container_is_ours_by_its_unit(fleet: Fleet) -> None:
    pids = {"5": {"name": "python3", "container": None, "unit": "tinderbox-gpt-oss.service"}}
    memory = {"tinderbox-gpt-oss.service": _GIB}
    host = seen(fleet, told(apps=None, containers=[], pids=pids, ports={"8000": [5]}, memory=memory))
    assert host.strangers == ()
    assert host.services[0].used == _GIB


def test_what_the_fleet_file_has_no_more_is_told(fleet: Fleet) -> None:
    host = seen(fleet, told(services={"gpt-oss": service(), "old": service(), "emptied": service(current=None)}))
    assert [(one.name, one.wanted) for one in host.services] == [("gpt-oss", True), ("old", False)]


def test_a_gate_that_another_release_failed_is_told_beside_the_one_in_force(fleet: Fleet) -> None:
    lines = [{"metric": "tg128@pp2048 c1", "verdict": "FAIL", "reason": "54.20 is below 60"}]
    failed = gate("r3", "FAIL", lines=lines)
    found = of(fleet, services={"gpt-oss": service(gate={"current": gate(), "later": failed})})
    assert found.gate is not None
    assert found.gate_of_another is not None
    assert (found.gate.release, found.gate.verdict) == ("r2", "PASS")
    assert (found.gate_of_another.release, found.gate_of_another.reason) == ("r3", "54.20 is below 60")


def test_what_the_watchdog_did_last_is_told(fleet: Fleet) -> None:
    restart = {"at": "2026-11-29T20:00:00Z", "event": "restarted", "by": "watchdog", "note": "wedged: no reply"}
    found = of(fleet, services={"gpt-oss": service(watchdog=restart, watched={"at": NOW - 300, "misses": 2})})
    assert found.watchdog is not None
    assert (found.watchdog.misses, found.watchdog.generated_s) == (2, 300.0)
    assert (found.watchdog.word, found.watchdog.word_at) == ("wedged: no reply", "2026-11-29T20:00:00Z")


def test_a_silent_host_and_its_services_are_unknown_since_they_were_last_seen(fleet: Fleet) -> None:
    host = seen(fleet, Silent("Could not connect (no answer within 1.5 s)"), before="2026-11-29T20:00:00Z")
    assert (host.answers, host.seen, host.programs) == (False, "2026-11-29T20:00:00Z", "unknown")
    assert "no answer" in str(host.trouble)
    assert [(one.name, one.state, one.deployed) for one in host.services] == [("gpt-oss", "unknown", None)]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer("", "sh: 1: python3: not found\n", 127), "it gave no answer: sh: 1: python3: not found"),
        (Answer('{"status": {"form": 1, "at"', "", None), "the connection broke before its answer was whole"),
        (Answer('{"status": {"form": 99}}\n', "", 0), "it gave no answer"),
        (Answer("", "", 0), "it gave no answer"),
    ],
)
def test_an_answer_that_is_none_makes_the_host_unknown(fleet: Fleet, answer: Answer, said: str) -> None:
    with pytest.raises(UnreadableError, match=said.split(":", maxsplit=1)[0]):
        document_in(answer)
    host = seen(fleet, answer)
    assert not host.answers
    assert str(host.trouble).startswith(said)


def test_an_answer_in_part_of_another_form_makes_the_host_unknown(fleet: Fleet) -> None:
    host = seen(fleet, told(services={"gpt-oss": "serves"}))
    assert not host.answers
    assert "not understood" in str(host.trouble)


def test_units_are_told_apart() -> None:
    assert unit_blocks("Id=a.service\nActiveState=active\n\nId=b.service\nJob=0\n") == {
        "a.service": {"Id": "a.service", "ActiveState": "active"},
        "b.service": {"Id": "b.service", "Job": "0"},
    }


def test_the_published_schema_is_current() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == schema_text()
