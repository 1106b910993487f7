"""Secrets of a fleet file after all that Tinderbox does: in root's own files on the host, and nowhere else."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from modules.lab.layout import ROOT
from modules.reporting.page.write import report_folder
from tests.lab.fake_release import FAST, SERVICE, by_hand, fleet_of
from tests.lab.hub_models import hub_model
from tests.lab.lab_driver import Lab, Run
from tests.lab.served import Served
from tests.lab.token_watch import Watch, watched_here, watched_host

pytestmark = [pytest.mark.lab, pytest.mark.long]
HOST, FLEET = "spark-2", "secrets"
# Of forms that the masking of logs does not know.
TOKEN, KEY = "planted+hub+0123456789", "planted+api+9876543210"
HOME = "/var/lib/tinderbox/secrets-test"
OWN_FILES = ["/etc/tinderbox/hub-token.hub", f"/etc/tinderbox/{SERVICE}.secret.env"]


@dataclass(frozen=True)
class Deployed:
    """A whole run, and which processes showed a secret meanwhile."""

    fleet: Path
    run: Run
    there: Watch
    here: Watch


@pytest.fixture(scope="module")
def deployed(lab: Lab) -> Iterator[Deployed]:
    """All of deploys/spark.py, with a model that only the token opens, and with all that pyinfra can say."""
    planted = lab.layout.folder / "planted"
    planted.mkdir(exist_ok=True)
    for name, secret in (("hub", TOKEN), ("api", KEY)):
        (planted / name).write_text(f"{secret}\n")
        (planted / name).chmod(0o600)
    with hub_model(lab, "gated-tiny") as model:
        model.publish_the_labs(TOKEN)
        made = yaml.safe_load(fleet_of(lab, HOST, FLEET, **FAST).read_text())

        def with_secrets(content: dict[str, Any]) -> None:
            content |= made | {"fleet": FLEET}
            content["secrets"] = {name: {"file": f"planted/{name}"} for name in ("hub", "api")}
            content["defaults"]["weights"] = {"home": HOME}
            service = content["defaults"]["services"][SERVICE]
            encodings = ["o200k_base.tiktoken", "cl100k_base.tiktoken"]
            service |= {"model": model.written_out(token="hub", size_gib=0.11, encodings=encodings), "api_key": "api"}

        fleet = lab.write_fleet(f"fleet-{FLEET}", with_secrets)
        with watched_host(lab, HOST, [TOKEN], [KEY]) as there, watched_here([TOKEN, KEY]) as here:
            run = lab.pyinfra("--debug", "-vvv", "-y", "deploys/spark.py", fleet=fleet, timeout_s=2400)
        yield Deployed(fleet, run, there, here)
        by_hand(lab, "remove", fleet, TINDERBOX_SERVICE=SERVICE)
        lab.ssh(HOST, f"sudo rm -rf {HOME} {' '.join(OWN_FILES)}")


def test_the_whole_run_shows_no_secret_in_its_words_or_in_any_process(lab: Lab, deployed: Deployed) -> None:
    assert deployed.run.rc == 0, deployed.run.text
    # It said all that it can, and both secrets were needed.
    assert "[pyinfra" in deployed.run.text
    assert "Weights tinderbox-lab/gated-tiny" in deployed.run.text
    assert lab.read(HOST, OWN_FILES[0]) == f"{TOKEN}\n"
    assert KEY in lab.read(HOST, OWN_FILES[1])
    assert Served(lab, deployed.fleet, HOST).state() == "active"

    assert shown(deployed.run.text) == []
    assert deployed.there.seen == []
    assert deployed.here.seen == []


def test_the_host_keeps_them_in_files_that_only_root_reads(lab: Lab, deployed: Deployed) -> None:
    places = "/etc /home /root /run /tmp /var/lib/tinderbox /var/log /var/tmp /usr/local"
    assert holders(lab, TOKEN, places) == [OWN_FILES[0]]
    docker, ours = "/run/containerd/", holders(lab, KEY, places)
    assert [path for path in ours if not path.startswith(docker)] == [OWN_FILES[1]]
    # A container's environment stands in docker's own record of it.
    for path in (*OWN_FILES, *(path for path in ours if path.startswith(docker))):
        assert "Permission denied" in lab.ssh(HOST, f"cat {path}", check=False).text, path
    modes = lab.ssh(HOST, f"sudo stat -c '%a %U' {' '.join(OWN_FILES)}").stdout.splitlines()
    assert modes == ["600 root"] * 2
    said = "journalctl --no-pager; systemctl show '*' --no-pager; systemctl cat 'tinderbox-*' --no-pager"
    assert shown(lab.ssh(HOST, f"sudo sh -c '{said}' 2>&1", check=False).text) == []


def test_reports_diagnoses_and_histories_hold_none(lab: Lab, deployed: Deployed) -> None:
    told = lab.tinderbox([sys.executable, "-m", "modules.reporting"], fleet=deployed.fleet)
    assert told.rc == 0, told.text
    runs = [told, *(by_hand(lab, name, deployed.fleet) for name in ("diagnose", "history", "verify_weights"))]
    for run in runs:
        assert run.rc == 0, run.text
        assert shown(run.text) == []
    written = [*report_folder(FLEET).rglob("*"), *(ROOT / ".tinderbox" / FLEET).rglob("*")]
    names = {path.name for path in written}
    assert {"index.html", "report.json", "junit.xml", "tinderbox.prom", "measured.json"} <= names
    for path in written:
        assert not path.is_file() or shown(path.read_bytes().decode(errors="replace")) == [], path
    for path in lab.layout.folder.glob("*.yaml"):
        assert shown(path.read_text()) == [], path


def test_the_service_reads_encodings_and_weights_and_writes_none(lab: Lab, deployed: Deployed) -> None:
    server = Served(lab, deployed.fleet, HOST)
    inspected = lab.ssh(HOST, f"sudo docker inspect {server.container}").json[0]
    writable = {mount["Destination"]: mount["RW"] for mount in inspected["Mounts"]}
    assert writable["/var/lib/tinderbox/encodings"] is False
    assert writable[f"{HOME}/hub"] is False
    environment = dict(line.split("=", 1) for line in inspected["Config"]["Env"])
    for name in ("TIKTOKEN_ENCODINGS_BASE", "TIKTOKEN_CACHE_DIR", "TIKTOKEN_RS_CACHE_DIR"):
        assert environment[name] == "/var/lib/tinderbox/encodings"
    said = f"sudo docker exec {server.container} sh -c 'touch /var/lib/tinderbox/encodings/x'"
    assert "Read-only file system" in lab.ssh(HOST, said, check=False).text


def test_a_second_run_is_no_change_and_shows_none_either(lab: Lab, deployed: Deployed) -> None:
    run = lab.pyinfra("--debug", "-vvv", "-y", "--json", "deploys/spark.py", fleet=deployed.fleet)
    assert run.rc == 0, run.text
    assert json.loads(run.stdout)["results"]["totals"]["success"] == 0
    assert shown(run.text) == []


def test_who_looked_for_them_would_have_seen_them(lab: Lab) -> None:
    """After all others, since this shows them."""
    with watched_host(lab, HOST, [TOKEN], [KEY]) as there, watched_here([TOKEN]) as here:
        lab.ssh(HOST, f"env A={TOKEN} sleep 2; env B={KEY} sleep 1; sh -c 'sleep 2; : {KEY}'")
    assert {Path(line).name for line in there.seen} == {"cmdline", "environ"}
    assert here.seen


def holders(lab: Lab, secret: str, places: str) -> list[str]:
    """The files that hold it; not asked by an argument, since sudo writes those down."""
    lab.write(HOST, "/dev/shm/planted", f"{secret}\n")
    command = f"sudo grep -rlsF --devices=skip -f /dev/shm/planted {places}; sudo rm /dev/shm/planted"
    return sorted(lab.ssh(HOST, command, check=False).stdout.split())


def shown(text: str) -> list[str]:
    """The lines that hold a secret."""
    return [line for line in text.splitlines() if TOKEN in line or KEY in line]
