"""Who has a port, asked of this machine's own sockets."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from modules.hostside import port_holder
from modules.hostside.port_holder import UNKNOWN, descends, foreign_holder, is_taken, listeners


@pytest.fixture
def port() -> Iterator[int]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


def test_a_listener_is_found_and_named(port: int) -> None:
    assert is_taken("127.0.0.1", port)
    assert is_taken("0.0.0.0", port)
    assert listeners(port) == [os.getpid()]
    holder = foreign_holder("127.0.0.1", port, ())
    assert holder is not None
    assert f"(pid {os.getpid()}" in holder


def test_what_the_service_itself_has_started_is_nobody_else(port: int) -> None:
    assert foreign_holder("127.0.0.1", port, [os.getpid()]) is None
    assert foreign_holder("127.0.0.1", port, [1 << 22, os.getppid()]) is None
    assert descends(os.getpid(), os.getppid())
    assert not descends(os.getppid(), os.getpid())


def test_a_free_port_and_one_at_another_address_are_free(port: int) -> None:
    assert foreign_holder("127.0.0.2", port, ()) is None
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        free = closed.getsockname()[1]
    assert foreign_holder("127.0.0.1", free, ()) is None
    # The engine itself says so.
    assert not is_taken("192.0.2.1", free)


def test_one_that_can_not_be_named_is_told_all_the_same(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(port_holder, "listeners", lambda _: [])
    assert foreign_holder("127.0.0.1", port, ()) == UNKNOWN
