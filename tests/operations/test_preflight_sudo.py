"""A host whose sudo asks for a password is stopped before pyinfra would ask the operator for it."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from pyinfra.api import Config, Inventory, State, deploy
from pyinfra.api.connect import connect_all
from pyinfra.api.deploy import add_deploy
from pyinfra.connectors.fake import FakeConnector
from pyinfra.context import host

from modules.facts.sudo import Sudo, SudoState
from roles.preflight.sudo import stop_where_sudo_asks

ANSWERS = {"free": ["spark", "free"], "asks": ["Welcome!", "anna", "asks"]}


@deploy("Stage")
def stage() -> None:
    """What the site's role begins with."""
    stop_where_sudo_asks(host)


def prepared(**answers: list[str]) -> State:
    hosts: list[tuple[str, dict[str, Any]]] = [
        (f"@fake/{name}", {"fake_responses": {"sudo -n true": lines}, "fake_delay": 0})
        for name, lines in answers.items()
    ]
    state = State(Inventory((hosts, {})), Config(SUDO=True))
    connect_all(state)
    state.activated_hosts = state.active_hosts = set(state.inventory)
    return state


def test_only_the_host_whose_sudo_asks_is_stopped_and_its_user_is_named(caplog: pytest.LogCaptureFixture) -> None:
    state = prepared(**ANSWERS)
    with caplog.at_level(logging.ERROR, logger="pyinfra"):
        add_deploy(state, stage)
    assert {each.name for each in state.failed_hosts} == {"@fake/asks"}
    first, second = [record.getMessage() for record in caplog.records if record.name == "pyinfra"]
    assert "user anna can not use sudo without a password" in first
    assert "echo 'anna ALL=(ALL) NOPASSWD: ALL' | sudo tee /etc/sudoers.d/anna" in first
    assert "nothing is done on this host because of this finding" in second


def test_the_question_itself_goes_without_sudo() -> None:
    state = prepared(free=ANSWERS["free"])
    add_deploy(state, stage)
    (only,) = state.inventory
    assert isinstance(only.connector, FakeConnector)
    (command,) = only.connector.executed_commands
    assert not command.startswith("sudo")


def test_a_login_banner_does_not_matter() -> None:
    assert Sudo().process(["Welcome to DGX Spark", "spark", "free"]) == SudoState("spark", free=True)
