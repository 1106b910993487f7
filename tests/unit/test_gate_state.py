"""What a host tells of a gate: age of the result, and what the release in force is held to."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from modules.hostside import gate_state
from modules.hostside.ledger import Ledger


def stamp(days_ago: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 86_400 * days_ago))


class Host:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "gates" / "svc"
        (self.folder / "former").mkdir(parents=True)
        self.ledger = Ledger("svc", root)
        self.ledger.directory.mkdir(parents=True)

    def release(self, name: str, *events: str) -> None:
        entry = {"release": {"commit": "c"}, "events": [{"event": event} for event in events]}
        self.ledger.entry_file(name).write_text(json.dumps(entry))

    def result(
        self, name: str, days_ago: float, verdict: str | None = "PASS", *, former: bool = False, workload: str = "w"
    ) -> str:
        finished = stamp(days_ago)
        document: dict[str, Any] = {"release": name, "finished": finished, "workload_id": workload, "samples": {}}
        document |= {"judgement": {"verdict": verdict}} if verdict else {}
        path = self.folder / "former" / f"{name}.{days_ago}.json" if former else self.folder / f"{name}.json"
        path.write_text(json.dumps(document))
        return finished

    def serve(self, name: str) -> None:
        (self.ledger.directory / "current").symlink_to(f"{name}.json")

    def state(self) -> dict[str, Any]:
        return gate_state.state("svc", self.root)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    host = Host(tmp_path)
    for name in ("r1", "r2", "r3"):
        host.release(name, "installed", "good")
    host.release("bad", "installed", "gate failed")
    host.serve("r3")
    return host


def test_the_newest_good_measurement_of_another_release_counts(host: Host) -> None:
    host.result("r1", 9)
    wanted = host.result("r2", 5)
    host.result("bad", 2, "FAIL")
    host.result("r3", 1, None)
    found = host.state()
    assert (found["reference"]["release"], found["reference"]["finished"]) == ("r2", wanted)
    assert found["result"]["age_s"] == pytest.approx(86_400, abs=30)


def test_what_was_measured_later_or_otherwise_is_no_reference(host: Host) -> None:
    host.result("r1", 9)
    host.result("r2", 1)
    host.result("r3", 5)
    assert host.state()["reference"]["release"] == "r1"
    host.result("r1", 9, workload="another")
    assert host.state()["reference"] is None


def test_without_another_release_its_own_past_counts(host: Host) -> None:
    wanted = host.result("r3", 30, former=True)
    host.result("r3", 40, former=True)
    host.result("r3", 20, "FAIL", former=True)
    host.result("r3", 1, None)
    assert host.state()["reference"]["finished"] == wanted


def test_a_release_that_was_never_good_is_no_reference(host: Host) -> None:
    host.result("bad", 5, "PASS")
    host.result("r3", 1, None)
    # Its gate may have passed, but something else about it was not good.
    found = host.state()["reference"]
    assert found is None or found["release"] != "bad"


def test_a_bare_host_has_nothing(tmp_path: Path) -> None:
    found = gate_state.state("svc", tmp_path)
    assert (found["current"], found["result"], found["reference"], found["datasets"]) == (None, None, None, [])


def test_the_evidence_is_the_series_and_the_log_of_that_start(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def journal(unit: str, invocation: str | None, lines: int | None) -> list[str]:
        asked.append((unit, invocation, lines))
        return ["VLLM_API_KEY=secret", *map(str, range(2000))]

    monkeypatch.setattr(gate_state, "journal", journal)
    document = {"release": "r3", "invocation": "abc", "samples": {"power_w": [1.0, None]}}
    (host.folder / "r3.json").write_text(json.dumps(document))
    found = gate_state.evidence(host.folder, "r3", "svc")
    assert asked == [("tinderbox-svc.service", "abc", None)]
    assert found["samples"] == {"power_w": [1.0, None]}
    assert found["log"][0] == "VLLM_API_KEY=***"
    assert (len(found["log"]), found["log"][-1]) == (2 * gate_state.LOG_LINES, "1999")
