"""Nobody is asked where there is no terminal."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from pyinfra.api import State
from pyinfra.context import ctx_state

from inventory.terminal import ask_nobody


class Stdin:
    """Standard input that is a terminal or not."""

    def __init__(self, terminal: bool) -> None:
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


def asks(_: object) -> bool:
    raise EOFError


def after(monkeypatch: pytest.MonkeyPatch, *, asked_by: Any, terminal: bool) -> Any:
    monkeypatch.setattr(sys, "stdin", Stdin(terminal))
    state = State()
    state.should_raise_failed_hosts = asked_by
    with ctx_state.use(state):
        ask_nobody()
    return state.should_raise_failed_hosts


def test_without_a_terminal_the_other_hosts_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = after(monkeypatch, asked_by=asks, terminal=False)
    assert answer(State()) is False


def test_at_a_terminal_pyinfra_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert after(monkeypatch, asked_by=asks, terminal=True) is asks


def test_with_yes_there_is_no_question(monkeypatch: pytest.MonkeyPatch) -> None:
    assert after(monkeypatch, asked_by=None, terminal=False) is None
