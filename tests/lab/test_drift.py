"""A hand edit of each kind of managed thing is found by name, and repaired by the next run; what is not ours stays."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from modules.fleet.lock import lock_path
from tests.lab.fake_release import FAST, deploy_file, fleet_of
from tests.lab.hand_edits import _BLOB, EDITS, OWN, OWN_STATE, SECRET, UNIT, VERSION
from tests.lab.lab_driver import Lab, Run

pytestmark = [pytest.mark.lab, pytest.mark.long]
HOST = "spark-2"
_MORE = """
from modules.operations.cuda import profile_settled
from roles.system import system
system(plan=plan)
profile_settled(name="Toolkit in login shells")
"""


@dataclass
class Edited:
    """A host that converges, and what comes of edits. `deploy`: all stages but the toolkit's package."""

    lab: Lab
    fleet: Path
    deploy: str

    def root(self, command: str, *, check: bool = True) -> Run:
        """A command of root's on the host."""
        return self.lab.ssh(HOST, f"sudo sh -c {shlex.quote(command)}", check=check)

    def converge(self) -> Run:
        """A run that has to succeed."""
        run = self.lab.converge(self.deploy, fleet=self.fleet)
        assert run.rc == 0, run.text
        return run

    def drift(self) -> Run:
        """What differs."""
        return self.lab.converge(self.deploy, "--drift", "--json", fleet=self.fleet)


@dataclass(frozen=True)
class Swept:
    """`found`: the list after the edits of each sweep; `repaired`: edit → whether it was undone by the run after.

    `after`: the list after that run. `own`: what is not ours, before all edits and after the last repair.
    """

    found: dict[int, Run]
    repaired: dict[str, bool]
    after: dict[int, Run]
    own: tuple[str, str]


@pytest.fixture(scope="module")
def edited(lab: Lab) -> Edited:
    same = int(lab.ssh(HOST, "cat /proc/sys/vm/swappiness").stdout)
    path = fleet_of(lab, HOST, "drift", **FAST)
    content = yaml.safe_load(path.read_text())
    content["defaults"]["system"] = {"swappiness": same, "protect_ssh": True, "clock_cap_mhz": 2100}
    content["defaults"]["runtime"] = {"container_toolkit_version": VERSION}
    path.write_text(yaml.safe_dump(content))
    deploy = lab.layout.folder / "drift.py"
    deploy.write_text(deploy_file(lab).read_text() + _MORE)
    host = Edited(lab, path, str(deploy))
    host.converge()
    return host


@pytest.fixture(scope="module")
def swept(edited: Edited) -> Iterator[Swept]:
    edited.root(OWN)
    # The keys in dockerd's configuration that are not ours take effect when it is next started.
    edited.converge()
    before = edited.root(OWN_STATE).stdout
    found, repaired, after = {}, {}, {}
    for sweep in sorted({edit.sweep for edit in EDITS.values()}):
        for name, edit in EDITS.items():
            if edit.sweep == sweep:
                done = edited.root(edit.command, check=False)
                assert done.rc == 0, f"{name}: {done.text}"
        found[sweep] = edited.drift()
        edited.converge()
        for name, edit in EDITS.items():
            if edit.sweep == sweep:
                repaired[name] = edited.root(edit.repaired, check=False).rc == 0
        after[sweep] = edited.drift()
    yield Swept(found, repaired, after, (before, edited.root(OWN_STATE).stdout))
    edited.root(
        "systemctl disable --now mine.service; docker rm mine; docker image rm mine:1; rm -rf "
        f"/etc/systemd/system/mine.service {UNIT}.d/mine.conf /etc/systemd/system/ssh.service.d/mine.conf "
        "/etc/sysctl.d/90-mine.conf /etc/apt/sources.list.d/mine.list /etc/profile.d/mine.sh",
        check=False,
    )


def listed(run: Run) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = run.json["hosts"][HOST]["differences"]
    return found


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_is_found_named_and_repaired(swept: Swept, name: str) -> None:
    edit = EDITS[name]
    run = swept.found[edit.sweep]
    folder, _, unit = edit.thing.rpartition("/")
    thing = f"unit {unit}" if folder == "/etc/systemd/system" else edit.thing
    assert run.rc == 2, run.text
    about = [one["detail"] for one in listed(run) if one["thing"].startswith(thing)]
    assert any(edit.detail in detail for detail in about), f"{thing}: {about}\n{run.text}"
    assert f"{HOST}: {thing}" in run.stderr
    assert swept.repaired[name], f"the run did not undo: {edit.command}"


@pytest.mark.parametrize("sweep", sorted({edit.sweep for edit in EDITS.values()}))
def test_after_the_repair_nothing_differs(swept: Swept, sweep: int) -> None:
    assert swept.after[sweep].rc == 0, swept.after[sweep].text
    assert listed(swept.after[sweep]) == []


def test_what_is_not_ours_is_not_named_and_left_alone(swept: Swept) -> None:
    assert swept.own[0] == swept.own[1]
    for run in (*swept.found.values(), *swept.after.values()):
        assert not [one for one in listed(run) if "mine" in one["thing"] and not one["thing"].endswith("/mine.py")]


def test_no_secret_is_listed(swept: Swept) -> None:
    assert not [run for run in swept.found.values() if SECRET in run.text]


def test_weights_that_were_changed_without_a_trace_are_found_by_hashing_alone(edited: Edited) -> None:
    blob = _BLOB.format(3)
    edited.root(
        f"f={blob}; touch -r $f /tmp/times; printf X | dd of=$f bs=1 seek=5000 conv=notrunc; touch -r /tmp/times $f"
    )
    # Size, time and inode are all that a look costs; see docs/weights.md.
    assert edited.drift().rc == 0
    hashed = edited.lab.converge("deploys/verify_weights.py", fleet=edited.fleet)
    assert hashed.rc == 1, hashed.text
    found = edited.drift()
    assert found.rc == 2, found.text
    assert "-00003-of-00003.safetensors" in found.stderr
    edited.converge()
    assert edited.root(f"test $(sha256sum < {blob} | cut -c 1-64) = $(basename {blob})", check=False).rc == 0
    assert edited.drift().rc == 0


def test_a_host_that_does_not_answer_is_unknown(edited: Edited) -> None:
    content = yaml.safe_load(edited.fleet.read_text())
    content["hosts"]["gone"] = {"address": "127.0.0.1", "ssh": {"port": 9}}
    path = edited.lab.layout.folder / "releases-drift-gone.yaml"
    path.write_text(yaml.safe_dump(content))
    lock_path(path).write_text(lock_path(edited.fleet).read_text())
    run = edited.lab.converge(edited.deploy, "--drift", "--json", fleet=path)
    assert run.rc == 3, run.text
    states = {name: host["state"] for name, host in run.json["hosts"].items()}
    assert states == {HOST: "same", "gone": "unknown"}
    assert "gone: unknown:" in run.stderr
