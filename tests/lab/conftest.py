"""The lab that end-to-end tests share.

`TINDERBOX_LAB_KEEP=1` finds and leaves it up, for whoever works on one test; `TINDERBOX_LAB_NAME` names another lab.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from modules.lab.layout import ROOT, Layout
from tests.lab.killed_run import Job, KilledRun, find_job, kill_run_during
from tests.lab.lab_driver import Lab, Run
from tests.lab.served import Served

_NAME = os.environ.get("TINDERBOX_LAB_NAME", "test")
_HOSTS = 2
_MAIN = "spark-1"
_FAILURES = ROOT / ".lab" / "failures"
_KEEP = os.environ.get("TINDERBOX_LAB_KEEP") == "1"


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """A lab of two bare hosts for all tests of the session: `spark-1` for the main path, `spark-2` to try things on."""
    lab = Lab(Layout.named(_NAME))
    if not _KEEP:
        # What a killed session left behind.
        lab.command("down")
    lab.command("up", "--hosts", str(_HOSTS))
    yield lab
    if not _KEEP:
        lab.command("down")


@pytest.fixture(scope="session")
def main_fleet(lab: Lab) -> Path:
    """The fleet file with `spark-1` alone, as everybody's first one."""
    return lab.fleet_of(_MAIN)


@pytest.fixture(scope="session")
def killed_runs(lab: Lab, main_fleet: Path) -> dict[str, KilledRun]:
    """The first two runs over the bare `spark-1`, killed in the middle of a job: the job's name → what was seen.

    The third one, `first_run`, finishes their work; so what a killed controller costs is tried at no cost.
    With TINDERBOX_LAB_KEEP on a lab that serves already there are none.
    """
    if find_job(lab, _MAIN, "gate") is not None:
        return {}
    build = kill_run_during(lab, main_fleet, _MAIN, "image", _in_a_later_step, limit_s=400)
    # One shard keeps the hub's client waiting (for less than it bears), while the rest arrives.
    slow = {"host": "hub.lab", "method": "GET", "path": "model-00003-of", "delay_s": 8}
    with lab.faults(slow):
        download = kill_run_during(lab, main_fleet, _MAIN, "weights", _some_way, limit_s=900)
    return {"image": build, "weights": download}


def _in_a_later_step(build: Job) -> bool:
    return build.progress.get("unit") == "steps" and build.progress["done"] >= 3


def _some_way(download: Job) -> bool:
    return download.progress.get("step") == "fetching" and download.progress["done"] > download.progress["total"] / 3


@pytest.fixture(scope="session")
def first_run(lab: Lab, main_fleet: Path, killed_runs: dict[str, KilledRun]) -> Run:
    """The run that brought `spark-1` to serving (with TINDERBOX_LAB_KEEP: perhaps one that found it so)."""
    run = lab.converge(fleet=main_fleet, timeout_s=1500)
    assert run.rc == 0, run.text
    return run


@pytest.fixture
def served(lab: Lab, main_fleet: Path, first_run: Run) -> Served:
    """The service of `spark-1`, ready."""
    served = Served(lab, main_fleet, _MAIN)
    served.await_ready()
    return served


@pytest.fixture(autouse=True)
def _no_faults_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that was interrupted while the mirror misbehaved shall not make the others fail."""
    yield
    if "lab" in request.fixturenames:
        lab: Lab = request.getfixturevalue("lab")
        (lab.layout.mirror_state / "faults.json").unlink(missing_ok=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Keep what the hosts say when a test on them fails, and tell where."""
    report = yield
    lab = getattr(item, "funcargs", {}).get("lab")
    if report.failed and isinstance(lab, Lab):
        folder = _FAILURES / re.sub(r"[^\w.-]+", "-", item.nodeid)
        try:
            lab.dump(folder)
        except Exception as error:
            report.sections.append(("lab", f"nothing could be read from its hosts: {error}"))
        else:
            report.sections.append(("lab", f"journals and logs of its hosts: {folder.relative_to(ROOT)}"))
    return report
