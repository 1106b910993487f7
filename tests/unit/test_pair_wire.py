"""How the members of a service that spans hosts know each other."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from modules.hostside.pair_links import Links
from modules.hostside.pair_wire import Channel, WireError, enter, proof, welcome

KEY, OTHER = b"k" * 64, b"x" * 64


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    head, worker = socket.socketpair()
    with head, worker:
        yield head, worker


def met(head: socket.socket, worker: socket.socket, head_key: bytes, worker_key: bytes) -> tuple[Any, Any]:
    """What came of it on both sides: a channel, or the error."""
    found: list[Any] = []

    def serve() -> None:
        try:
            found.append(welcome(head, head_key, "gpt-oss", 2))
        except (OSError, WireError) as error:
            found.append(error)
            head.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        mine: Any = enter(worker, worker_key, "gpt-oss", "spark-2", 2)
    except (OSError, WireError) as error:
        mine = error
    thread.join(timeout=10)
    return found[0], mine


def test_both_sides_hear_each_other(ends: tuple[socket.socket, socket.socket]) -> None:
    head, worker = met(*ends, KEY, KEY)
    assert (head.peer, worker.peer) == ("spark-2", "head")
    for number in range(3):
        head.say({"order": number})
        worker.say({"report": number})
        assert worker.hear() == {"order": number}
        assert head.hear() == {"report": number}


@pytest.mark.parametrize(("head_key", "worker_key"), [(KEY, OTHER), (OTHER, KEY)])
def test_who_has_another_key_is_sent_away(
    ends: tuple[socket.socket, socket.socket], head_key: bytes, worker_key: bytes
) -> None:
    head, worker = met(*ends, head_key, worker_key)
    assert isinstance(head, WireError)
    assert isinstance(worker, OSError | WireError)


def test_what_was_said_to_the_head_can_not_be_said_to_a_worker(ends: tuple[socket.socket, socket.socket]) -> None:
    """A message that goes back where it came from has the wrong direction in its proof."""
    head, worker = met(*ends, KEY, KEY)
    worker.say({"report": 1})
    said = ends[0].recv(65536)
    ends[0].sendall(said)
    with pytest.raises(WireError):
        worker.hear()
    assert isinstance(head, Channel)


def test_nothing_can_be_said_twice(ends: tuple[socket.socket, socket.socket]) -> None:
    head, worker = met(*ends, KEY, KEY)
    worker.say({"report": 1})
    said = ends[0].recv(65536)
    ends[1].sendall(said + said)
    assert head.hear() == {"report": 1}
    with pytest.raises(WireError):
        head.hear()


def test_the_key_itself_is_never_said(ends: tuple[socket.socket, socket.socket]) -> None:
    head, worker = ends
    worker.sendall(json.dumps({"host": "spark-2", "nonce": "n", "proof": "wrong"}).encode() + b"\n")
    with pytest.raises(WireError):
        welcome(head, KEY, "gpt-oss", 2)
    told = worker.recv(65536)
    assert KEY not in told
    assert KEY.decode() not in proof(KEY, "worker", "gpt-oss")


def test_who_hangs_up_or_says_nonsense_is_no_member(ends: tuple[socket.socket, socket.socket]) -> None:
    head, worker = ends
    worker.sendall(b"GET / HTTP/1.1\r\n\r\n")
    worker.shutdown(socket.SHUT_WR)
    with pytest.raises((OSError, WireError)):
        welcome(head, KEY, "gpt-oss", 2)


@pytest.mark.parametrize(
    "said",
    [
        json.dumps({"host": "spark-2", "nonce": "n", "proof": "é"}, ensure_ascii=False).encode(),
        json.dumps({"host": "spark-2", "nonce": "n", "proof": "\ud800"}).encode(),
        b"\xff\xfe",
        b"[" * 4000,
        b"x" * 100_000,
    ],
)
def test_whatever_a_stranger_says_is_refused_as_that(ends: tuple[socket.socket, socket.socket], said: bytes) -> None:
    """What else it could raise would end the thread that connects a worker, for ever."""
    head, worker = ends
    worker.sendall(said + b"\n")
    with pytest.raises((OSError, WireError, ValueError)):
        welcome(head, KEY, "gpt-oss", 2)


@pytest.mark.parametrize("said", [json.dumps({"proof": "é"}, ensure_ascii=False).encode(), b"[" * 4000])
def test_whatever_a_false_head_says_is_refused_as_that(ends: tuple[socket.socket, socket.socket], said: bytes) -> None:
    head, worker = ends
    head.sendall(json.dumps({"service": "gpt-oss", "nonce": "n"}).encode() + b"\n" + said + b"\n")
    with pytest.raises((OSError, WireError, ValueError)):
        enter(worker, KEY, "gpt-oss", "spark-2", 2)


def test_a_message_with_a_proof_that_is_no_ascii_is_refused(ends: tuple[socket.socket, socket.socket]) -> None:
    head, _ = met(*ends, KEY, KEY)
    ends[1].sendall(b"\xff {}\n")
    with pytest.raises(WireError):
        head.hear()


def test_a_peer_that_was_never_heard_is_lost_only_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("modules.hostside.pair_links.time.monotonic", lambda: now[0])
    links = Links(lambda _peer, _said: {}, lambda _text: None)
    assert not links.lost("spark-2")
    now[0] += 16
    assert links.lost("spark-2")
    with suppress(KeyError):
        assert links.heard() == {}
