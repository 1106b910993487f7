"""A service that the fleet file calls otherwise than before, on a lab host: at no point two engines, at no end none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.lab.fake_release import FAST, SERVICE, by_hand, deployed, fleet_of
from tests.lab.lab_driver import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]
HOST, NEW = "spark-2", "renamed"
OLD_UNIT, NEW_UNIT = f"tinderbox-{SERVICE}.service", f"tinderbox-{NEW}.service"


def renamed(lab: Lab, name: str, **environment: str) -> Path:
    """The fleet file of before, its service under another name."""
    path = fleet_of(lab, HOST, name, {"gate": None}, **{**FAST, **environment})
    content: dict[str, Any] = yaml.safe_load(path.read_text())
    services = content["defaults"]["services"]
    services[NEW] = services.pop(SERVICE)
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


def states(lab: Lab) -> tuple[list[str], list[str]]:
    """Whether old and new one are active, and enabled."""
    shown = [
        lab.ssh(HOST, f"systemctl {verb} {OLD_UNIT} {NEW_UNIT}", check=False).stdout.split()
        for verb in ("is-active", "is-enabled")
    ]
    return shown[0], shown[1]


def containers(lab: Lab) -> list[str]:
    return lab.ssh(HOST, "sudo docker ps --format '{{.Names}}'").stdout.split()


def last_event(lab: Lab, service: str) -> tuple[str, str]:
    current = json.loads(lab.read(HOST, f"/var/lib/tinderbox/ledger/{service}/current"))
    event = current["events"][-1]
    return event["event"], event.get("note", "")


@pytest.fixture
def before(lab: Lab) -> Path:
    """The fleet file by whose name the service serves."""
    fleet = fleet_of(lab, HOST, "before", {"gate": None}, **FAST)
    run = deployed(lab, fleet)
    assert run.rc == 0, run.text
    # What an earlier run of this test has left.
    assert by_hand(lab, "remove", fleet).rc == 0
    return fleet


def test_a_renamed_service_takes_over_or_leaves_the_old_one_serving(lab: Lab, before: Path) -> None:
    run = deployed(lab, renamed(lab, "renamed-badly", FAKE_FAULT="exits"))
    assert run.rc == 1, run.text
    assert f"service {SERVICE} is on this host, and the fleet file does not have it" in run.text
    assert f"{SERVICE}, which had made way for it, serves again" in run.text
    assert containers(lab) == [f"tinderbox-{SERVICE}"]
    assert states(lab) == (["active", "inactive"], ["enabled", "disabled"])
    assert last_event(lab, SERVICE) == ("restored", f"service {NEW} did not get ready")

    good = renamed(lab, "renamed-well", FAKE_TOKEN_S="0.004")
    run = deployed(lab, good)
    assert run.rc == 0, run.text
    assert containers(lab) == [f"tinderbox-{NEW}"]
    assert states(lab) == (["inactive", "active"], ["disabled", "enabled"])
    assert last_event(lab, SERVICE)[0] == "stopped"
    again = deployed(lab, good)
    assert again.rc == 0, again.text
    assert again.json["results"]["totals"]["success"] == 0

    # Whichever is started by hand, the other one ends first.
    lab.ssh(HOST, f"sudo systemctl start {OLD_UNIT}")
    assert (states(lab)[0], containers(lab)) == (["active", "inactive"], [f"tinderbox-{SERVICE}"])
    lab.ssh(HOST, f"sudo systemctl start {NEW_UNIT}")
    assert (states(lab)[0], containers(lab)) == (["inactive", "active"], [f"tinderbox-{NEW}"])

    removed = by_hand(lab, "remove", good)
    assert removed.rc == 0, removed.text
    assert containers(lab) == [f"tinderbox-{NEW}"]
    left = f"ls -d /etc/systemd/system/*{SERVICE}* /etc/tinderbox/{SERVICE}.* /var/lib/tinderbox/ledger/{SERVICE}"
    assert lab.ssh(HOST, f"sudo sh -c '{left}'", check=False).stdout == ""

    # By its old name again, which is no stranger any more.
    back = deployed(lab, before)
    assert back.rc == 0, back.text
    assert containers(lab) == [f"tinderbox-{SERVICE}"]
    assert by_hand(lab, "remove", before).rc == 0
    assert lab.ssh(HOST, f"systemctl show -P Conflicts {OLD_UNIT}").stdout.split().count(NEW_UNIT) == 1
