"""The nightly timer on the controller."""

from __future__ import annotations

import hashlib
from typing import Any

from modules.facts.files import FileState, FileStates
from modules.facts.timer import Timer, TimerState
from modules.operations.managed_files import ManagedFile
from modules.operations.nightly import nightly_removed, nightly_settled
from tests.operations.stub_host import StubHost, commands_of

UNIT = "tinderbox-nightly-office"
FILES = [ManagedFile(f"/etc/systemd/system/{UNIT}.{kind}", f"{kind}\n") for kind in ("service", "timer")]
THERE = {
    file.path: FileState(hashlib.sha256(str(file.content).encode()).hexdigest(), "644", "root:root") for file in FILES
}
ABSENT = dict.fromkeys(THERE)
WAITS, NONE = TimerState(True, True, False), TimerState(False, False, False)


def asked(operation: Any, files: object, timer: TimerState) -> tuple[list[str], StubHost]:
    host = StubHost({FileStates: files, Timer: timer})
    commands = commands_of(host, operation, unit=UNIT, files=FILES)
    return [command.get_raw_value() for command in commands], host


def test_it_is_placed_and_started() -> None:
    commands, _ = asked(nightly_settled, ABSENT, NONE)
    assert [UNIT in command for command in commands] == [True, True, False, True]
    assert commands[2] == "systemctl daemon-reload"
    assert commands[3] == f"systemctl enable --quiet {UNIT}.timer && systemctl restart {UNIT}.timer"


def test_a_second_run_has_nothing_to_do() -> None:
    commands, host = asked(nightly_settled, THERE, WAITS)
    assert (commands, host.noops) == ([], [f"{UNIT}.timer waits"])


def test_one_that_was_stopped_by_hand_is_started_again() -> None:
    for timer in (TimerState(True, False, False), TimerState(False, True, False)):
        assert len(asked(nightly_settled, THERE, timer)[0]) == 1
    assert asked(nightly_settled, THERE, TimerState(True, True, True))[0][0] == "systemctl daemon-reload"


def test_it_is_taken_away_and_there_is_nothing_to_take_away_twice() -> None:
    commands, _ = asked(nightly_removed, THERE, WAITS)
    assert commands[0].startswith(f"systemctl disable --quiet --now {UNIT}.timer")
    assert len(commands) == 4
    commands, host = asked(nightly_removed, ABSENT, NONE)
    assert (commands, host.noops) == ([], [f"there is no {UNIT}.timer"])


def test_what_systemd_says_of_it_is_read() -> None:
    of_both = (
        "UnitFileState=enabled\nActiveState=active\nNeedDaemonReload=no\n\nUnitFileState=static\nActiveState=failed\n"
    )
    assert Timer().parse([*of_both.splitlines(), "NeedDaemonReload=yes"]) == TimerState(True, True, True)
    assert Timer().parse("UnitFileState=\nActiveState=inactive\nNeedDaemonReload=no".splitlines()) == NONE
