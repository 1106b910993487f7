"""Whoever does not know the key keeps no member out, however many connections it opens, however slowly it speaks."""

from __future__ import annotations

import json
import socket
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from modules.hostside import pair_links, pair_wire
from modules.hostside.pair_entrance import MOST_UNPROVED, Entrance
from modules.hostside.pair_links import Links

# As the programs import them on a host.
if TYPE_CHECKING:
    from modules.hostside.pair_wire import WireError, enter, welcome
else:
    from pair_wire import WireError, enter, welcome

KEY = b"k" * 64


@pytest.fixture
def head() -> tuple[Links, int]:
    """A head that listens, and its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    links = Links(lambda _peer, _said: {}, lambda _text: None)
    threading.Thread(target=links.serve, args=("127.0.0.1", port, KEY, "gpt-oss"), daemon=True).start()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
        else:
            break
    return links, port


def joins(port: int, host: str = "spark-2") -> Any:
    """As a member does, which tries again: those of one address crowd each other out on a busy machine."""
    deadline = time.monotonic() + 20
    while True:
        connection = socket.create_connection(("127.0.0.1", port), timeout=10)
        try:
            channel = enter(connection, KEY, "gpt-oss", host, 10)
            channel.say({"report": host})
        except (WireError, OSError):
            connection.close()
            if time.monotonic() > deadline:
                raise
        else:
            return channel


def heard(links: Links, host: str) -> bool:
    deadline = time.monotonic() + 20
    while host not in links.heard() and time.monotonic() < deadline:
        time.sleep(0.02)
    return host in links.heard()


def test_a_member_is_heard_however_many_connections_prove_nothing(head: tuple[Links, int]) -> None:
    links, port = head
    with ExitStack() as open_:
        # More than there may be of any kind; each is silent, and would wait for its own deadline.
        for _ in range(3 * pair_links._MOST):
            open_.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
        open_.callback(joins(port).close)
        assert heard(links, "spark-2")


def test_members_that_are_connected_are_not_sent_away_by_strangers(head: tuple[Links, int]) -> None:
    links, port = head
    member = joins(port)
    assert heard(links, "spark-2")
    with ExitStack() as open_:
        for _ in range(3 * pair_links._MOST):
            open_.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
        member.say({"report": "again"})
        deadline = time.monotonic() + 20
        while links.heard()["spark-2"] != {"report": "again"} and time.monotonic() < deadline:
            time.sleep(0.02)
        assert links.heard()["spark-2"] == {"report": "again"}
    member.close()


def test_a_member_that_comes_again_and_again_has_one_connection(head: tuple[Links, int]) -> None:
    links, port = head
    former = [joins(port) for _ in range(2 * pair_links._MOST)]
    assert heard(links, "spark-2")
    deadline = time.monotonic() + 20
    while links._entrance._inside and time.monotonic() < deadline:
        time.sleep(0.02)
    last, other = joins(port), joins(port, "spark-3")
    assert heard(links, "spark-3")
    deadline = time.monotonic() + 20
    while len(links._proved) != 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert {one.peer for one in links._proved} == {"spark-2", "spark-3"}
    for channel in (*former, last, other):
        channel.close()


def test_who_speaks_letter_by_letter_is_sent_away_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_wire, "HELLO_S", 0.3)
    monkeypatch.setattr("pair_wire.HELLO_S", 0.3)
    ours, theirs = socket.socketpair()
    ended: list[BaseException] = []
    stop = threading.Event()

    def trickle() -> None:
        while not stop.wait(0.05):
            try:
                theirs.sendall(b"x")
            except OSError:
                return

    thread = threading.Thread(target=trickle)
    thread.start()
    try:
        welcome(ours, KEY, "gpt-oss", 2)
    except (OSError, WireError) as error:
        ended.append(error)
    finally:
        stop.set()
        thread.join()
        ours.close()
        theirs.close()
    # Not by the length of what it said, which would have taken minutes.
    assert isinstance(ended[0], TimeoutError)


def test_a_crowd_from_one_source_sends_nobody_elses_away() -> None:
    entrance, pairs = Entrance(), [socket.socketpair() for _ in range(2 * MOST_UNPROVED)]
    member, _ = socket.socketpair()
    entrance.enter(member, "10.0.0.2")
    for ours, _ in pairs:
        entrance.enter(ours, "10.0.0.66")
    assert member in entrance._inside
    assert len(entrance._inside) == MOST_UNPROVED
    # The newest of the crowd are there: one that proves itself may come from there, too.
    assert pairs[-1][0] in entrance._inside
    assert pairs[0][1].recv(1) == b""
    entrance.leave(member)
    assert json.dumps(sorted(set(entrance._inside.values()))) == '["10.0.0.66"]'
    for ours, theirs in pairs:
        ours.close()
        theirs.close()
    member.close()
