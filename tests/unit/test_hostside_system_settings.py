"""Settings of the operating system: brought about once, and undone to what the host had."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from modules.hostside import system_settings
from modules.hostside.system_earlyoom import EARLYOOM
from modules.hostside.system_settings import CLOCKS, DISPLAY, apply, differences

# As the program imports it on a host, so that it is the very class whose errors it knows.
if TYPE_CHECKING:
    from modules.hostside.system_host import System
else:
    from system_host import System

NOTHING: dict[str, Any] = {
    "earlyoom": False, "swappiness": None, "clock_cap_mhz": None, "desktop": None, "end_desktop": False
}  # fmt: skip


class Machine:
    """A host in a folder, with a systemd that does what it is told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "proc/sys/vm/swappiness"
        self.path.parent.mkdir(parents=True)
        self.path.write_text("60\n")
        self.target, self.sessions = "graphical.target", ""
        self.active = {DISPLAY: True, CLOCKS: False, EARLYOOM: False}
        self.enabled = {EARLYOOM: False}
        self.stale: set[str] = set()
        # As the unit has it for systemd, and as it has it once systemd has read it anew.
        self.words = self.written = "/usr/bin/earlyoom -r 60"
        self.said: list[str] = []
        self.fails: str | None = None

    @property
    def system(self) -> System:
        return System(self.folder / "proc", self.folder / "undo", self.folder / "units", self.ask)

    def ask(self, *command: str) -> tuple[int, str]:
        text = " ".join(command)
        if command[:2] != ("systemctl", "show") and command[1] not in {"get-default", "is-enabled"}:
            self.said.append(text)
        if self.fails is not None and self.fails in text:
            return 1, "out of order"
        return 0, self.answer(*command)

    def answer(self, *command: str) -> str:
        unit = command[-1]
        match command[:2]:
            case ("systemctl", "show"):
                return {
                    "NeedDaemonReload": "yes" if unit in self.stale else "no",
                    "ActiveState": "active" if self.active.get(unit) else "inactive",
                    "LoadState": "loaded",
                    "ExecStart": f"{{ path=x ; argv[]={self.words} ; start_time=[{len(self.said)}] }}",
                }[command[3]]
            case ("systemctl", "get-default"):
                return self.target
            case ("systemctl", "set-default"):
                self.target = unit
            case ("systemctl", "is-enabled"):
                return "enabled" if self.enabled.get(unit) else "disabled"
            case ("systemctl", "enable" | "disable" as verb):
                # By which systemd reads all units anew, too.
                self.words = self.written
                self.enabled[unit] = verb == "enable"
                self.active[unit] = self.active.get(unit, False) and "--now" not in command
            case ("systemctl", "start" | "restart"):
                self.active[unit] = True
            case ("systemctl", "stop"):
                self.active[unit] = False
            case ("systemctl", "daemon-reload"):
                self.stale.clear()
                self.words = self.written
            case ("loginctl", "list-sessions"):
                return "   3 1000 ana seat0 tty2\n" if self.sessions else ""
            case ("loginctl", "show-session"):
                return self.sessions
        return ""

    def wants(self, **wish: Any) -> list[str]:
        return differences(self.system, NOTHING | wish)

    def has(self, **wish: Any) -> list[str]:
        """Apply, and see that nothing is left to do. Returns what went wrong."""
        failed = apply(self.system, NOTHING | wish)
        assert failed or self.wants(**wish) == []
        return failed

    @property
    def kept(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "undo/system.json").read_text())
        return found


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_without_a_wish_nothing_is_touched(machine: Machine) -> None:
    assert machine.wants() == []
    machine.has()
    assert machine.said == []
    assert not (machine.folder / "undo").exists()


def test_a_setting_is_brought_about_once_and_undone_to_what_the_host_had(machine: Machine) -> None:
    assert machine.wants(swappiness=10) == ["vm.swappiness is 60, wanted 10"]
    machine.has(swappiness=10)
    assert machine.path.read_text() == "10\n"
    # Another wish does not make ours the former value.
    machine.has(swappiness=1)
    machine.has()
    assert machine.path.read_text() == "60\n"
    assert machine.kept == {}


def test_what_a_host_had_already_is_not_taken_away_from_it(machine: Machine) -> None:
    machine.path.write_text("10\n")
    machine.has(swappiness=10)
    machine.has()
    assert machine.path.read_text() == "10\n"


def test_one_that_fails_is_told_and_keeps_none_of_the_others_back(machine: Machine) -> None:
    machine.fails = "set-default"
    (failed,) = machine.has(desktop=False, swappiness=10)
    assert failed == "systemctl set-default --quiet multi-user.target ended with exit status 1: out of order"
    assert machine.path.read_text() == "10\n"


def test_clocks_are_capped_by_a_unit_and_freed_when_its_file_has_gone(machine: Machine) -> None:
    machine.has(clock_cap_mhz=2150)
    assert machine.said == [f"systemctl enable --quiet {CLOCKS}", f"systemctl restart {CLOCKS}"]
    assert machine.wants(clock_cap_mhz=2000) == ["the GPU's clocks are not capped at 2000 MHz"]
    machine.has(clock_cap_mhz=2000)
    link = machine.folder / "units/multi-user.target.wants" / CLOCKS
    link.parent.mkdir(parents=True)
    link.symlink_to(f"/etc/systemd/system/{CLOCKS}")
    machine.said.clear()
    machine.has()
    assert machine.said == [f"systemctl stop {CLOCKS}", "nvidia-smi -rgc"]
    assert not link.is_symlink()
    assert machine.kept == {}


def test_a_cap_that_fell_is_set_again(machine: Machine) -> None:
    machine.has(clock_cap_mhz=2150)
    machine.active[CLOCKS] = False
    assert machine.wants(clock_cap_mhz=2150)


def test_a_gpu_that_can_not_be_capped_is_told(machine: Machine) -> None:
    machine.fails = f"restart {CLOCKS}"
    (failed,) = machine.has(clock_cap_mhz=2150)
    assert "out of order" in failed
    assert machine.wants(clock_cap_mhz=2150)


def test_the_desktop_goes_and_comes_back(machine: Machine) -> None:
    machine.has(desktop=False)
    assert (machine.target, machine.active[DISPLAY]) == ("multi-user.target", False)
    # Not by a target: that would end jobs.
    assert not any("isolate" in said for said in machine.said)
    machine.has()
    assert (machine.target, machine.active[DISPLAY]) == ("graphical.target", True)
    assert machine.kept == {}


def test_nobody_is_thrown_out_of_a_desktop_unless_asked(machine: Machine) -> None:
    machine.sessions = "Type=wayland\nClass=user"
    machine.has(desktop=False)
    assert (machine.target, machine.active[DISPLAY]) == ("multi-user.target", True)
    machine.has(desktop=False, end_desktop=True)
    assert not machine.active[DISPLAY]


@pytest.mark.parametrize("session", ["Type=wayland\nClass=greeter", "Type=tty\nClass=user"])
def test_a_greeter_or_a_login_over_ssh_is_nobody_there(machine: Machine, session: str) -> None:
    machine.sessions = session
    machine.has(desktop=False)
    assert not machine.active[DISPLAY]


def test_a_host_without_a_desktop_is_left_without_one(machine: Machine) -> None:
    machine.target, machine.active[DISPLAY] = "multi-user.target", False
    machine.has(desktop=False)
    machine.has()
    assert (machine.target, machine.active[DISPLAY]) == ("multi-user.target", False)


def test_systemd_reads_what_changed_before_anything_starts(machine: Machine) -> None:
    machine.stale = {EARLYOOM, "user.slice"}
    assert machine.wants()[0] == f"systemd has not read what changed of user.slice, {EARLYOOM}"
    machine.has(earlyoom=True)
    assert machine.said[0] == "systemctl daemon-reload"
    assert machine.active[EARLYOOM]


def packages(machine: Machine, *added: str) -> Path:
    path = machine.folder / "undo/packages.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"earlyoom": {"added": list(added), "before": {}}, "other": {"added": ["other"]}}))
    return path


def test_a_package_that_came_for_it_goes_with_it(machine: Machine) -> None:
    listed = packages(machine, "earlyoom")
    machine.enabled[EARLYOOM] = machine.active[EARLYOOM] = True
    machine.has(earlyoom=True)
    machine.has()
    assert machine.said[-1].endswith("purge earlyoom")
    assert list(json.loads(listed.read_text())) == ["other"]
    assert machine.kept == {}


@pytest.mark.parametrize("enabled", [True, False])
def test_one_that_was_there_before_is_as_it_was(machine: Machine, enabled: bool) -> None:
    machine.enabled[EARLYOOM] = machine.active[EARLYOOM] = enabled
    machine.has(earlyoom=True)
    assert machine.active[EARLYOOM]
    machine.has()
    assert (machine.enabled[EARLYOOM], machine.active[EARLYOOM]) == (enabled, enabled)
    assert not any("purge" in said for said in machine.said)


def test_one_that_ran_by_other_settings_is_started_once(machine: Machine) -> None:
    machine.enabled[EARLYOOM] = machine.active[EARLYOOM] = True
    machine.words = "/usr/bin/earlyoom $EARLYOOM_ARGS"
    machine.has(earlyoom=True)
    assert sum(said == f"systemctl restart {EARLYOOM}" for said in machine.said) == 1


def test_it_is_started_anew_when_its_settings_have_changed(machine: Machine) -> None:
    machine.has(earlyoom=True)
    machine.words = "/usr/bin/earlyoom -m 5"
    assert machine.wants(earlyoom=True) == ["earlyoom does not run as wished"]


def test_the_program_reads_a_wish_and_says_how_it_is_called() -> None:
    done = subprocess.run(
        [sys.executable, system_settings.__file__, "check"],
        input=json.dumps(NOTHING), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert isinstance(json.loads(done.stdout), list)
    done = subprocess.run([sys.executable, system_settings.__file__], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "system_settings.py check|apply < WISH\n")
