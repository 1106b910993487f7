"""A hub, or a mirror of one, that gives something else than a file: told by file and host, and the next run finishes.

Each fault meets a model of its own, whose first weight file comes in good order: it must not be fetched again.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from modules.spec.holder import HOLD
from tests.lab.hub_models import ONE, TWO, HubModel, content, hub_model
from tests.lab.lab_driver import Lab, Run
from tests.lab.spread_driver import DEPLOY

pytestmark = [pytest.mark.lab, pytest.mark.long]
HOST = "spark-2"
HOME = "/var/lib/tinderbox/hub-faults"
PAGE = "<!doctype html><html><body>Please log in</body></html>"

FAULTS: dict[str, dict[str, Any]] = {
    "401": {"status": 401},
    "403-gated": {"status": 403, "headers": {"X-Error-Code": "GatedRepo"}},
    "404": {"status": 404, "headers": {"X-Error-Code": "EntryNotFound"}},
    "429": {"status": 429, "headers": {"Retry-After": "1"}},
    "500": {"status": 500},
    "html": {"status": 200, "headers": {"Content-Type": "text/html"}, "body": PAGE},
    "length": {"length": 4711},
    "stall": {"stall_after": 0},
    "tampered": {"flip_at": 1_000_000},
    "cut": {"drop": True},
}
WORDS = {
    "401": "the hub wants to know who asks (401)",
    "403-gated": "gated (403): accept the model's licence on the hub",
    "404": "the hub lists this file and has it not (404): is `network.hub` a whole mirror?",
    "429": "the hub limits our rate (429): wait a few minutes and run again",
    "500": "the hub is in trouble itself (500): run again later, or set `network.hub` to a mirror",
    "html": f"the answer has {len(PAGE)} bytes (text/html), where ",
    "length": "the answer has 4711 bytes (application/octet-stream), where ",
    "stall": "no answer in time: check `network.hub` and `network.proxy`; whole files are kept",
    "tampered": "the hub gave a file that is not the one it publishes, twice: ",
    "cut": "the connection broke again and again: run again; whole files are kept",
}


@dataclass(frozen=True)
class Met:
    """What came of a fault: the run that met it, and the one after it was gone."""

    model: HubModel
    commit: str
    failed: Run
    after: Run
    fetched: list[tuple[str, int]]
    fetched_after: list[tuple[str, int]]


@pytest.fixture(scope="module")
def met(lab: Lab) -> Iterator[dict[str, Met]]:
    """All faults at once: the fetching is patient with some of them."""
    equipped = lab.converge(DEPLOY, fleet=lab.fleet_of(HOST))
    assert equipped.rc == 0, equipped.text
    with ExitStack() as stack, ThreadPoolExecutor(3) as pool:
        stack.enter_context(pytest.MonkeyPatch.context()).setenv(HOLD, "0")
        models = {name: stack.enter_context(hub_model(lab, f"fault-{name}")) for name in FAULTS}
        stack.callback(lab.ssh, HOST, f"sudo rm -rf {HOME}")
        commits = {name: model.publish(content(name)) for name, model in models.items()}

        def run(name: str) -> Run:
            def change(written: dict[str, Any]) -> None:
                written["hosts"] = {HOST: written["hosts"][HOST]}
                # One file after the other, so that it is known which ones are there.
                written["defaults"]["weights"] = {"home": HOME, "workers": 1}
                models[name].served(written)

            return lab.converge(DEPLOY, fleet=lab.write_fleet(f"hub-fault-{name}", change), timeout_s=600)

        before = len(lab.requests())
        rules = [
            {"host": "hub.lab", "method": "GET", "path": f"fault-{name}/resolve/.*/{TWO}$", **fault}
            for name, fault in FAULTS.items()
        ]
        with lab.faults(*rules):
            failed = dict(zip(FAULTS, pool.map(run, FAULTS), strict=True))
        between = len(lab.requests())
        came = {name: model.fetched(before) for name, model in models.items()}
        after = dict(zip(FAULTS, pool.map(run, FAULTS), strict=True))
        yield {
            name: Met(models[name], commits[name], failed[name], after[name], came[name], models[name].fetched(between))
            for name in FAULTS
        }


@pytest.mark.parametrize("name", FAULTS)
def test_it_is_told_by_file_and_host(met: dict[str, Met], name: str) -> None:
    run = met[name].failed
    assert run.rc == 1, run.text
    assert "Traceback" not in run.text
    lines = {line[line.index("spark-2: ") :] for line in run.stderr.splitlines() if "spark-2: " in line}
    (line,) = {line for line in lines if WORDS[name] in line}
    assert line.startswith(f"spark-2: {met[name].model.repository}@") or name == "tampered"
    assert TWO in line


@pytest.mark.parametrize("name", FAULTS)
def test_the_next_run_finishes_and_fetches_no_file_again_that_was_there(met: dict[str, Met], name: str) -> None:
    found = met[name]
    assert found.after.rc == 0, found.after.text
    assert ONE in [file for file, _ in found.fetched]
    assert {file for file, _ in found.fetched_after} <= {TWO, "config.json"}
    found.model.whole(HOST, HOME, found.commit)


def test_a_file_that_was_tampered_with_is_kept_and_never_served(lab: Lab, met: dict[str, Met]) -> None:
    assert f"{TWO}: sha256 " in met["tampered"].failed.text
    kept = lab.ssh(HOST, f"sudo find {HOME}/tinderbox-set-aside -type f").stdout
    assert "fault-tampered" in kept
