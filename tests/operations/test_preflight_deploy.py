"""Preflight as part of a run over several hosts, none of which is real."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyinfra.api import Config, Inventory, State
from pyinfra.api.connect import connect_all
from pyinfra.api.deploy import add_deploy
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.operations import run_ops
from pyinfra.connectors.fake import FakeConnector

import roles.preflight as role
from modules.spec.lock import Lock
from roles.preflight import preflight
from tests.unit.preflight_machine import answer, gpu, plan


@pytest.fixture(autouse=True)
def _no_fleet_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is locked yet."""
    monkeypatch.setattr(role, "load_fleet", lambda: SimpleNamespace(path=Path("fleet.yaml")))
    monkeypatch.setattr(role, "read_lock", lambda _: Lock())


BAD = answer(gpu=[gpu(driver="590.48.01")], machine="x86_64")


def prepared(answers: dict[str, Any], *, fail_percent: int | None = None) -> State:
    hosts = [
        (f"@fake/{name}", {"fake_responses": {"python3 -c": said}, "fake_delay": 0}) for name, said in answers.items()
    ]
    state = State(Inventory((hosts, {})), Config(FAIL_PERCENT=fail_percent))
    connect_all(state)
    state.activated_hosts = state.active_hosts = set(state.inventory)
    return state


def commands(state: State) -> list[str]:
    (host,) = state.inventory
    assert isinstance(host.connector, FakeConnector)
    return host.connector.executed_commands


def failed(state: State) -> set[str]:
    return {host.name for host in state.failed_hosts}


def test_only_the_blocked_host_is_stopped_and_before_anything_runs(caplog: pytest.LogCaptureFixture) -> None:
    state = prepared({"good": answer(), "bad": BAD})
    with caplog.at_level(logging.INFO, logger="pyinfra"):
        add_deploy(state, preflight, plan=plan())
    assert failed(state) == {"@fake/bad"}
    told = [
        record.getMessage()
        for record in caplog.records
        if "bad" in record.getMessage() and record.levelno >= logging.ERROR
    ]
    assert [("architecture" in line, "driver" in line, "these 2 findings" in line) for line in told] == [
        (True, False, False),
        (False, True, False),
        (False, False, True),
    ]
    run_ops(state)
    assert failed(state) == {"@fake/bad"}


def test_a_good_host_is_asked_once_and_changed_by_nothing() -> None:
    state = prepared({"good": answer()})
    add_deploy(state, preflight, plan=plan())
    run_ops(state)
    assert len(commands(state)) == 1
    (host,) = state.inventory
    (operation,) = state.ops[host].values()
    assert operation.operation_meta.did_succeed()
    assert not operation.operation_meta.did_change()


def test_the_gatherer_is_run_as_root_only_by_itself() -> None:
    state = prepared({"good": answer()})
    add_deploy(state, preflight, plan=plan())
    (command,) = commands(state)
    assert "sudo -n true" in command
    assert "sudo -n /usr/bin/python3" in command
    assert not command.startswith("sudo")


def test_a_host_whose_answer_is_not_understood_fails_alone() -> None:
    state = prepared({"good": answer(), "odd": answer(files={"/proc/meminfo": "nothing\n"})})
    add_deploy(state, preflight, plan=plan())
    assert failed(state) == {"@fake/odd"}


def test_with_no_host_left_the_run_ends() -> None:
    state = prepared({"bad": BAD})
    with pytest.raises(PyinfraError, match="No hosts remaining"):
        add_deploy(state, preflight, plan=plan())


def test_nobody_is_asked_whether_the_others_shall_go_on() -> None:
    state = prepared({"good": answer(), "bad": BAD}, fail_percent=0)
    asked: list[State] = []

    def ask(state: State) -> bool:
        asked.append(state)
        return True

    state.should_raise_failed_hosts = ask
    add_deploy(state, preflight, plan=plan())
    assert (failed(state), asked) == ({"@fake/bad"}, [])
    assert state.should_raise_failed_hosts is ask


def test_a_wanted_fail_percent_still_counts() -> None:
    state = prepared({"good": answer(), "bad": BAD}, fail_percent=0)
    with pytest.raises(PyinfraError, match="Over 0% of hosts failed"):
        add_deploy(state, preflight, plan=plan())
