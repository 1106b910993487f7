"""One run at a time per fleet: the lock on the controller."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from modules.converge.holder import refused_text, taken_over_text
from modules.converge.lock import HeldError, held, lock_identity, lock_name
from modules.converge.process import _files, _variables
from modules.fleet import Fleet, load_fleet
from modules.spec.holder import HOLDER, LOCK, Holder, parse_holder

ROOT = Path(__file__).resolve().parents[2]
FLEET = "fleet: office\nhosts: {spark-1: {address: 10.0.0.1}, spark-2: {address: 10.0.0.2}}\n"
ANNA = Holder("anna", "desk", 4711, "deploys/spark.py", 1000.0, "/home/anna/office.yaml")
# Another process, as from another checkout: it says that it holds the fleet, and then waits.
_HOLDS = """
import sys, time
from pathlib import Path
from modules.converge.lock import held
from modules.fleet import load_fleet
with held(load_fleet(Path(sys.argv[1])), "deploys/spark.py", within=Path(sys.argv[2])):
    print("holds", flush=True)
    time.sleep(60)
"""


def fleet_in(folder: Path, text: str = FLEET) -> Fleet:
    folder.mkdir(exist_ok=True)
    path = folder / "office.yaml"
    path.write_text(text)
    return load_fleet(path)


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return fleet_in(tmp_path / "mine")


def other_run(tmp_path: Path) -> subprocess.Popen[str]:
    other = fleet_in(tmp_path / "theirs").path
    argv = [sys.executable, "-c", _HOLDS, str(other), str(tmp_path)]
    child = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "holds\n"
    return child


def test_the_lock_is_the_fleets_whatever_the_checkout_and_another_fleets_is_another(tmp_path: Path) -> None:
    names = [
        lock_name(fleet_in(tmp_path / "a")),
        lock_name(fleet_in(tmp_path / "b", f"# by anna\n{FLEET}")),
        lock_name(fleet_in(tmp_path / "c", FLEET.replace("office", "lab"))),
        lock_name(fleet_in(tmp_path / "d", FLEET.replace("10.0.0.2", "10.0.0.3"))),
    ]
    assert names[0] == names[1]
    assert len(set(names)) == 3
    assert all("/" not in name for name in names)


def test_it_names_its_holder_is_given_back_and_may_be_held_again(fleet: Fleet, tmp_path: Path) -> None:
    path = tmp_path / lock_name(fleet)
    for _ in range(2):
        with held(fleet, "deploys/spark.py", within=tmp_path) as before:
            assert before is None
            holder = parse_holder(path.read_text())
            assert holder is not None
            assert (holder.pid, holder.deploy, holder.fleet) == (os.getpid(), "deploys/spark.py", str(fleet.path))
            assert holder.user
            assert holder.machine
            assert len(_files) == 1
            assert _variables == {LOCK: lock_identity(path), HOLDER: path.read_text()}
        assert path.read_text() == ""
        assert (_files, _variables) == ([], {})
    assert path.stat().st_mode & 0o777 == 0o666


def test_hosts_tell_the_lock_of_one_controller_from_anothers_of_the_same_fleet(fleet: Fleet, tmp_path: Path) -> None:
    told = []
    for controller in ("desk", "laptop"):
        folder = tmp_path / controller
        folder.mkdir()
        for _ in range(2):
            with held(fleet, "deploys/spark.py", within=folder):
                told.append(_variables[LOCK])
    assert told[0] == told[1]
    assert told[2] == told[3]
    # By the same name the second would end the first one's hold of a host, as what a dead run of its own left behind.
    assert told[0] != told[2]


def test_a_run_that_ends_by_an_error_gives_it_back(fleet: Fleet, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), held(fleet, "x", within=tmp_path):
        raise KeyboardInterrupt
    with held(fleet, "x", within=tmp_path) as before:
        assert before is None


def test_a_second_run_is_told_who_holds_it_since_when_and_what_to_do(fleet: Fleet, tmp_path: Path) -> None:
    with other_run(tmp_path) as child:
        with pytest.raises(HeldError) as refused, held(fleet, "deploys/gate.py", within=tmp_path):
            pass
        child.kill()
    text = str(refused.value)
    for said in (
        "fleet office is being changed by another run",
        f"process {child.pid}, deploys/spark.py of {tmp_path}/theirs/office.yaml, since ",
        f"kill -INT {child.pid}",
        str(tmp_path / lock_name(fleet)),
    ):
        assert said in text


def test_a_holder_that_was_killed_holds_nothing_and_the_next_run_is_told(fleet: Fleet, tmp_path: Path) -> None:
    with other_run(tmp_path) as child:
        child.send_signal(signal.SIGKILL)
        child.wait()
    with held(fleet, "deploys/gate.py", within=tmp_path) as before:
        assert before is not None
        assert before.pid == child.pid
    with held(fleet, "deploys/gate.py", within=tmp_path) as before:
        assert before is None


def test_what_the_lock_holds_is_read_with_care(fleet: Fleet, tmp_path: Path) -> None:
    assert parse_holder(ANNA.document()) == ANNA
    for text in ("", "{", "[]", "4711", json.dumps({"user": "anna"}), '{"pid": null}'):
        assert parse_holder(text) is None
    (tmp_path / lock_name(fleet)).write_text("not ours\n")
    with held(fleet, "x", within=tmp_path) as before:
        assert before is None


def test_a_lock_that_is_a_link_is_not_followed(fleet: Fleet, tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("precious")
    (tmp_path / lock_name(fleet)).symlink_to(tmp_path / "theirs")
    with pytest.raises(HeldError, match="can not be opened"), held(fleet, "x", within=tmp_path):
        pass
    assert (tmp_path / "theirs").read_text() == "precious"


def test_how_it_is_told() -> None:
    text = refused_text("office", ANNA, "/run/lock/x", alive=True, now=ANNA.since + 720)
    assert "anna@desk, process 4711, deploys/spark.py of /home/anna/office.yaml, since 1970-01-01 00:16:40 UTC" in text
    assert "(12 min ago)" in text
    gone = refused_text("office", ANNA, "/run/lock/x", alive=False, now=time.time())
    assert "that process is gone, but the pyinfra that it had started goes on: see fuser -v /run/lock/x" in gone
    assert "whose name is not in the lock yet" in refused_text("office", None, "/run/lock/x", alive=False, now=0)
    assert "This run takes over" in taken_over_text(ANNA, ANNA.since + 7200)
    assert "(2.0 h ago)" in taken_over_text(ANNA, ANNA.since + 7200)
