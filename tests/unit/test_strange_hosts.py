"""A host that breaks off, or that is no sshd at all, is told as such, and keeps no other host from its turn."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any

import paramiko
import pytest

from modules.bootstrap import __main__ as bootstrap
from modules.bootstrap import connection
from modules.bootstrap.connection import Connection
from modules.bootstrap.refusal import RefusedError
from modules.discover.look import look
from modules.spec.fleet import ResolvedHost, Ssh
from modules.spec.settings import HostSettings

HOST = ResolvedHost(name="spark-1", address="127.0.0.1", ssh=Ssh(), groups=(), settings=HostSettings())
BROKEN = [OSError("Socket is closed"), EOFError(), paramiko.SSHException("lost ssh-agent")]


class Transport:
    """As far as it is asked here; `says`: what comes of an attempt."""

    says: Exception = EOFError()

    def __init__(self, _: object) -> None:
        """Connect to nobody."""

    def get_security_options(self) -> Any:
        return SimpleNamespace(key_types=list(connection.KINDS))

    def start_client(self, timeout: float) -> None:
        raise self.says

    def auth_publickey(self, *_: object) -> None:
        raise self.says

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.create_connection", lambda *_, **__: None)
    monkeypatch.setattr(paramiko, "Transport", Transport)


@pytest.mark.parametrize(
    "said",
    [ValueError("bad key"), struct.error("short"), IndexError(), TypeError(), UnicodeDecodeError("a", b"", 0, 0, "x")],
)
def test_what_is_no_sshd_in_order_is_refused_and_discover_goes_on(
    monkeypatch: pytest.MonkeyPatch, said: Exception
) -> None:
    monkeypatch.setattr(Transport, "says", said)
    with pytest.raises(RefusedError, match="no sshd in order"):
        Connection(HOST)
    assert look("127.0.0.1", 22, "nvidia", ()) == (None, None)


@pytest.mark.parametrize("said", BROKEN)
def test_a_login_that_breaks_off_is_refused(monkeypatch: pytest.MonkeyPatch, said: Exception) -> None:
    monkeypatch.setattr(Transport, "says", said)
    login = Connection.__new__(Connection)
    login.host, login.transport = HOST, paramiko.Transport(("", 0))
    with pytest.raises(RefusedError, match="ended the connection"):
        login.let_in_by_key([paramiko.ECDSAKey.generate()])


@pytest.mark.parametrize("said", BROKEN)
def test_bootstrap_goes_on_with_the_next_host(monkeypatch: pytest.MonkeyPatch, said: Exception) -> None:
    def breaks(*_: object) -> None:
        raise said

    monkeypatch.setattr(bootstrap, "open_host", breaks)
    monkeypatch.setattr(bootstrap, "_keys", lambda _: None)
    refused: dict[str, RefusedError] = {}
    met: Any = SimpleNamespace(host=HOST, key=None)
    passwords: Any = None
    assert not bootstrap._opened(met, passwords, refused)
    assert "the connection broke" in refused["spark-1"].what
