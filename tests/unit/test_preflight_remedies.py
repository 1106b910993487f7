"""Remedies are commands for root's shell: no name that a host told gets out of its word."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from modules.facts.machine import machine_state
from modules.facts.machine_state import MachineState, StrangeFiles, Stranger
from roles.preflight.others import stop_commands
from roles.preflight.space import judge_caches
from tests.unit.preflight_machine import answer

NAMES = ["x; reboot .service", "$(reboot).service", "a'b`reboot`.service", "plain.service"]


@pytest.mark.parametrize("name", NAMES)
def test_names_of_what_is_to_be_stopped_are_one_word(name: str) -> None:
    unit = Stranger(7, "x", 0, unit=name)
    container = Stranger(7, "x", 0, container=name)
    for command in (*stop_commands(unit), *stop_commands(container)):
        assert shlex.split(command)[-1] == name
        assert shlex.join(shlex.split(command)) == command


@pytest.mark.parametrize("name", NAMES)
def test_folders_of_a_cache_are_one_word_each(name: str) -> None:
    state = machine_state(answer())
    assert isinstance(state, MachineState)
    (finding,) = judge_caches(replace(state, strange_files=(StrangeFiles(f"/home/{name}/c", f"/home/{name}", 1),)))
    (command,) = finding.commands
    assert shlex.split(command)[-2:] == [f"--reference=/home/{name}", f"/home/{name}/c"]
