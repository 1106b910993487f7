"""What a change of the fleet file costs a real vLLM that serves: one restart, and none without a change."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from modules.lab.model.repository import COMMIT, REPOSITORY, hub
from tests.lab.lab_driver import Lab
from tests.lab.served import Served

pytestmark = [pytest.mark.lab, pytest.mark.long]
HOST = "spark-1"
_OTHER = "tinderbox-lab/gpt-oss-other"

Change = Callable[[dict[str, Any]], None]


def flag(service: dict[str, Any]) -> None:
    service["flags"] = {"max-num-seqs": 4}


def image(service: dict[str, Any]) -> None:
    # No step of its build uses it, so all of them come out of docker's cache; the image is another one all the same.
    service["image"] = {"arguments": {"ANOTHER": "1"}}


def model(service: dict[str, Any]) -> None:
    service["model"] = {
        "repository": _OTHER,
        "revision": COMMIT,
        "size_gib": 0.11,
        "encodings": ["o200k_base.tiktoken", "cl100k_base.tiktoken"],
        "served_as": "gpt-oss-other",
        "source": "the lab's model by another name",
    }


@pytest.fixture(scope="module", autouse=True)
def other_model(lab: Lab) -> None:
    """A second model at the lab's hub."""
    target = lab.layout.mirror_state / "hub" / _OTHER
    if not target.exists():
        shutil.copytree(hub().path / REPOSITORY, target)


@pytest.fixture
def main_again(lab: Lab, main_fleet: Path, served: Served) -> Iterator[Served]:
    """Whatever comes of the test, the host then serves as the others expect it."""
    release = served.release()
    yield served
    run = lab.converge(fleet=main_fleet)
    assert run.rc == 0, run.text
    assert served.release() == release


def fleet_with(lab: Lab, name: str, change: Change) -> Path:
    """The main fleet file with that change; without a gate, since what it measures is not at issue here."""

    def changed(content: dict[str, Any]) -> None:
        content["hosts"] = {HOST: content["hosts"][HOST]}
        for service in content["defaults"]["services"].values():
            service["gate"] = None
            change(service)

    return lab.write_fleet(f"changed-{name}", changed)


def starts(lab: Lab, unit: str, since: float) -> int:
    """How often systemd has begun to start the unit since then, of its own accord too."""
    journal = f"sudo journalctl --no-pager -o cat -u {unit} _PID=1 --since @{since:.0f}"
    return sum(line.startswith("Starting") for line in lab.ssh(HOST, journal).stdout.splitlines())


@pytest.mark.parametrize("change", [flag, image, model], ids=lambda change: change.__name__)
def test_a_change_is_one_restart_and_the_run_after_it_changes_nothing(
    lab: Lab, main_again: Served, change: Change
) -> None:
    before = main_again.release(), main_again.image(), main_again.invocation()
    fleet = fleet_with(lab, change.__name__, change)
    since = float(lab.ssh(HOST, "date +%s").stdout)
    time.sleep(1)

    run = lab.converge(fleet=fleet)

    assert run.rc == 0, run.text
    server = Served(lab, fleet, HOST)
    assert starts(lab, server.unit, since) == 1
    assert (server.state(), server.release() != before[0]) == ("active", True)
    assert (server.image() != before[1]) == (change is image)
    assert server.reply()
    asked = f"curl -s --max-time 10 http://127.0.0.1:{server.plan.service.port}/v1/models"
    assert [one["id"] for one in lab.ssh(HOST, asked).json["data"]] == [server.plan.model.served_as]
    invocation = server.invocation()
    again = lab.converge(fleet=fleet)
    assert again.rc == 0, again.text
    assert "no change on any host" in again.stderr
    assert server.invocation() == invocation
