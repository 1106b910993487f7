"""What a host gets for the operating system's settings, and that one that has them gets nothing."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from dataclasses import replace
from typing import Any

import pytest

from modules.facts.apt import AptPackage, PackageState
from modules.facts.files import FileState
from modules.facts.system import PROGRAM, SystemSettings, SystemState
from modules.operations.system import system_files, system_settled
from modules.spec.settings import System
from tests.operations.stub_host import StubHost, commands_of

ALL = System(earlyoom=True, protect_ssh=True, swappiness=10, clock_cap_mhz=2150, desktop=False)
INSTALLED = PackageState("1.7-1", {}, {})


def settled(system: System) -> SystemState:
    found: dict[str, FileState | None] = {}
    for file in system_files(system):
        digest = hashlib.sha256((file.content or "").encode()).hexdigest()
        found[file.path] = None if file.content is None else FileState(digest, file.mode, "root:root")
    return SystemState(found, ())


def given(state: SystemState | None, system: System, package: PackageState = INSTALLED) -> tuple[StubHost, list[Any]]:
    host = StubHost({SystemSettings: state, AptPackage: package})
    return host, commands_of(host, system_settled, system=system)


@pytest.mark.parametrize("system", [System(), ALL])
def test_a_host_that_is_as_wished_gets_nothing(system: System) -> None:
    host, commands = given(settled(system), system)
    assert commands == []
    assert host.noops


def test_a_bare_host_gets_the_files_and_then_what_they_are_for() -> None:
    _, (*files, last) = given(settled(System()), ALL)
    assert [file.get_raw_value().split()[-2] for file in files] == [one.path for one in system_files(ALL)]
    assert last.get_raw_value() == f"/usr/bin/python3 {PROGRAM} apply"
    assert json.loads(last.connector_arguments["_stdin"])["swappiness"] == 10


def test_what_is_unset_is_taken_away_and_undone() -> None:
    _, (*files, last) = given(settled(ALL), System())
    assert len(files) == len(system_files(ALL))
    assert all(" take-away " in file.get_raw_value() for file in files)
    wish = json.loads(last.connector_arguments["_stdin"])
    assert (wish["earlyoom"], wish["swappiness"], wish["clock_cap_mhz"], wish["desktop"]) == (False, None, None, None)


def test_a_run_that_was_cut_after_the_files_is_finished() -> None:
    _, (last,) = given(replace(settled(ALL), differences=("vm.swappiness is 60, wanted 10",)), ALL)
    assert last.get_raw_value().endswith("apply")


def test_earlyoom_is_installed_only_where_it_is_asked_for() -> None:
    host, _ = given(settled(System()), System())
    assert [fact for fact, _ in host.asked] == [SystemSettings]
    missing = PackageState(None, {}, {})
    _, (install, *_) = given(settled(System()), System(earlyoom=True), missing)
    assert "install_package.py" in install.get_raw_value()


def test_a_host_that_gives_no_answer_is_refused() -> None:
    _, (refusal,) = given(None, System())
    assert "settings could not be read" in refusal.get_raw_value()


def test_ssh_keeps_what_the_slice_around_it_keeps_for_it() -> None:
    kept = {file.path: file.content for file in system_files(System(protect_ssh=True)) if file.content}
    units = {path.split("/")[4]: text.splitlines()[-1] for path, text in kept.items()}
    assert units == {
        "ssh.service.d": "MemoryMin=192M", "system.slice.d": "MemoryMin=192M", "user.slice.d": "MemoryMin=4G"
    }  # fmt: skip


def test_the_units_are_valid(tmp_path: Any) -> None:
    texts = {file.path.removeprefix("/etc/systemd/system/"): str(file.content) for file in system_files(ALL)}
    clocks = tmp_path / "tinderbox-clocks.service"
    clocks.write_text(texts["tinderbox-clocks.service"].replace("/usr/bin/nvidia-smi", "/bin/true"))
    earlyoom = tmp_path / "earlyoom.service"
    earlyoom.write_text(texts["earlyoom.service.d/tinderbox.conf"].replace("/usr/bin/earlyoom", "/bin/true"))
    for unit in (clocks, earlyoom):
        done = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(unit)],
            capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"},
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")


def test_the_fact_reads_what_the_program_and_the_files_say() -> None:
    state = SystemSettings().process([json.dumps(["it differs"]), "absent - - /etc/a b"])
    assert state == SystemState({"/etc/a b": None}, ("it differs",))
    command = SystemSettings().command(paths=["/etc/a b"], wish={"swappiness": 10}).get_raw_value()
    assert command.startswith(f"! test -e {PROGRAM} || {{ printf %s '{{\"swappiness\": 10}}' | ")
