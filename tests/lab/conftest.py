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
from modules.spec.holder import HOLD
from tests.lab.first_deployment import FirstDeployment, deploy_first
from tests.lab.lab_driver import Lab, Run
from tests.lab.served import Served

_NAME = os.environ.get("TINDERBOX_LAB_NAME", "test")
_HOSTS, _WIDE_HOSTS = 2, 4
_MAIN = "spark-1"
_FAILURES = ROOT / ".lab" / "failures"
_LABS = {"lab", "wide_lab", "upgrade_lab"}
_KEEP = os.environ.get("TINDERBOX_LAB_KEEP") == "1"


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """A lab of two bare hosts for all tests of the session: `spark-1` for the main path, `spark-2` to try things on."""
    yield from _lab(_NAME, _HOSTS)


@pytest.fixture(scope="session")
def wide_lab() -> Iterator[Lab]:
    """A lab of four bare hosts, for what passes between hosts."""
    yield from _lab(f"{_NAME}-wide", _WIDE_HOSTS)


@pytest.fixture(scope="session")
def upgrade_lab() -> Iterator[Lab]:
    """A lab of two bare hosts whose drivers and dockers are upgraded: nothing else is to run on them afterwards."""
    yield from _lab(f"{_NAME}-upgrade", _HOSTS)


def _lab(name: str, hosts: int) -> Iterator[Lab]:
    lab = Lab(Layout.named(name))
    if not _KEEP:
        # What a killed session left behind.
        lab.command("down")
    lab.command("up", "--hosts", str(hosts))
    yield lab
    if not _KEEP:
        lab.command("down")


@pytest.fixture(scope="session")
def main_fleet(lab: Lab) -> Path:
    """The fleet file with `spark-1` alone, as everybody's first one."""
    return lab.fleet_of(_MAIN)


@pytest.fixture(scope="session")
def first_deployment(lab: Lab, main_fleet: Path) -> FirstDeployment:
    """How `spark-1` came from bare to serving: by two runs that were killed, and a third."""
    return deploy_first(lab, main_fleet, _MAIN)


@pytest.fixture(scope="session")
def first_run(first_deployment: FirstDeployment) -> Run:
    """The run after which `spark-1` serves."""
    assert first_deployment.last.rc == 0, first_deployment.last.text
    return first_deployment.last


@pytest.fixture
def served(lab: Lab, main_fleet: Path, first_run: Run) -> Served:
    """The service of `spark-1`, ready."""
    served = Served(lab, main_fleet, _MAIN)
    served.await_ready()
    return served


@pytest.fixture
def undisturbed(served: Served) -> Iterator[None]:
    """The server runs on, from the image that it had."""
    before = served.invocation(), served.image()
    yield
    assert (served.invocation(), served.image()) == before
    assert served.reply()


@pytest.fixture
def side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of this test may change one host at the same time, as those of two controllers can before one is told."""
    monkeypatch.setenv(HOLD, "0")


@pytest.fixture(autouse=True)
def _no_faults_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that was interrupted while the mirror misbehaved shall not make the others fail."""
    yield
    for name in _LABS & set(request.fixturenames):
        lab: Lab = request.getfixturevalue(name)
        (lab.layout.mirror_state / "faults.json").unlink(missing_ok=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Keep what the hosts say when a test on them fails, and tell where."""
    report = yield
    arguments = getattr(item, "funcargs", {})
    lab = next((arguments[name] for name in sorted(_LABS) if name in arguments), None)
    if report.failed and isinstance(lab, Lab):
        folder = _FAILURES / re.sub(r"[^\w.-]+", "-", item.nodeid)
        try:
            lab.dump(folder)
        except Exception as error:
            report.sections.append(("lab", f"nothing could be read from its hosts: {error}"))
        else:
            report.sections.append(("lab", f"journals and logs of its hosts: {folder.relative_to(ROOT)}"))
    return report
