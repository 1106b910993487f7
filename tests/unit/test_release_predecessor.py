"""A service that takes a server's place: cut anywhere, exactly one of them runs in the end, and never both."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from modules.hostside import release_switch
from tests.unit.fake_systemd import SERVICE, Cut, Machine, machines

# The one that the programs themselves have: on a host they lie beside each other.
predecessor: Any = sys.modules[vars(release_switch)["regained"].__module__]
CONTAINER = "c" * 64
Make = Callable[[set[str]], tuple[Machine, "Former"]]


class Former:
    """The server that runs. `machine`: beside which the service's engine would run."""

    def __init__(self) -> None:
        self.runs, self.machine = True, Machine(Path(), set(), set())

    def ask(self, *words: str) -> str:
        if "{{.State.Running}}" in words:
            return str(self.runs).lower()
        return json.dumps([{"Id": CONTAINER, "HostConfig": {"RestartPolicy": {"Name": "no"}, "AutoRemove": False}}])

    def stop(self) -> None:
        self.machine.effect()
        self.runs = False

    def start(self, _: str) -> None:
        self.machine.effect()
        self.runs = True
        self.look()

    def look(self) -> None:
        if self.runs and self.machine.engine is not None:
            self.machine.wrong.append("both run")


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Make:
    machine_of = machines(monkeypatch, tmp_path)
    systemd = subprocess.run

    def made(sound: set[str]) -> tuple[Machine, Former]:
        former = Former()

        def run(words: Any, **more: Any) -> Any:
            if list(words[:2]) == ["docker", "stop"] and words[-1] == CONTAINER:
                former.stop()
                return subprocess.CompletedProcess(words, 0, "", "")
            done = systemd(words, **more)
            former.look()
            return done

        machine = machine_of(sound)
        machine.gated = False
        former.machine = machine
        monkeypatch.setattr(subprocess, "run", run)
        monkeypatch.setattr(predecessor, "run", former.ask)
        monkeypatch.setattr(predecessor.docker_api, "start", former.start)
        record = {"named": "container llm", "name": "llm", "container": CONTAINER, "units": [], "pid": 1, "port": 8000}
        predecessor.choose(SERVICE, record, machine.root)
        machine.effects = 0
        return machine, former

    return made


@pytest.mark.parametrize("sound", [True, False], ids=["ready", "never ready"])
def test_a_cut_anywhere_leaves_one_of_them_in_the_end(make: Make, sound: bool) -> None:
    whole, former = make({"r"} if sound else set())
    whole.run("r")
    assert (whole.engine, former.runs, whole.wrong) == (("r", False, []) if sound else (None, True, []))
    for cut in range(1, whole.effects + 1):
        machine, former = make({"r"} if sound else set())
        machine.cut_at = cut
        with pytest.raises(Cut):
            machine.run("r")
        machine.cut_at = -1
        machine.run("r")
        assert (machine.engine, former.runs, machine.wrong) == ((*(("r", False) if sound else (None, True)), [])), cut


def test_a_server_that_was_not_chosen_is_left_alone(make: Make) -> None:
    machine, former = make({"r"})
    predecessor.note_file(SERVICE, machine.root).unlink()
    machine.run("r")
    assert former.runs
