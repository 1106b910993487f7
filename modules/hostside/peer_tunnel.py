"""A way from this host's loopback to another host's registry: plain TCP at this end, mutual TLS between the hosts.

Docker takes a registry on loopback as it is, without certificates in its own folders, and never by a proxy.
"""

from __future__ import annotations

import select
import socket
import ssl
import threading
from pathlib import Path

_CHUNK = 1 << 18
_CONNECT_S = 15.0
_SILENCE_S = 300.0
_CERTIFICATE = "-----BEGIN CERTIFICATE-----"
# How a TLS client begins. Docker tries TLS first, which is not spoken at this end.
_TLS_HELLO = b"\x16"


def client_tls(keys: Path) -> ssl.SSLContext:
    """A client's context. `keys`: PEM of what it shows, with its key, and last of the one authority that it trusts."""
    authority = keys.read_text().rpartition(_CERTIFICATE)
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cadata=authority[1] + authority[2])
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(keys)
    return context


class Tunnel:
    """Listens on a free port of loopback as long as it is entered. `received`: bytes that came from the other host."""

    def __init__(self, address: str, port: int, tls: ssl.SSLContext) -> None:
        self._there, self._tls = (address, port), tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.received = 0
        self._lock = threading.Lock()

    def __enter__(self) -> Tunnel:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def connect(self) -> ssl.SSLSocket:
        """A connection to the other host. Raises `OSError` (TLS's errors among them)."""
        plain = socket.create_connection(self._there, timeout=_CONNECT_S)
        try:
            connection = self._tls.wrap_socket(plain, server_hostname=self._there[0])
        except BaseException:
            plain.close()
            raise
        connection.settimeout(_SILENCE_S)
        return connection

    def _accept(self) -> None:
        while True:
            try:
                here, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(here,), daemon=True).start()

    def _carry(self, here: socket.socket) -> None:
        here.settimeout(_SILENCE_S)
        with here:
            try:
                if here.recv(1, socket.MSG_PEEK) in {_TLS_HELLO, b""}:
                    return
                with self.connect() as there:
                    self._relay(here, there)
            except OSError as error:
                print(f"the connection to {self._there[0]} broke: {error}", flush=True)

    def _relay(self, here: socket.socket, there: ssl.SSLSocket) -> None:
        """Carry bytes both ways until one side ends.

        In one thread: a TLS connection bears no second one. And without waiting in TLS, which may have read something
        of its own (a session ticket) while the request is still to be sent.
        """
        there.setblocking(False)
        while True:
            readable = [there] if there.pending() else select.select([here, there], [], [], _SILENCE_S)[0]
            if not readable:
                return
            if there in readable:
                try:
                    chunk = there.recv(_CHUNK)
                except ssl.SSLWantReadError:
                    continue
                if not chunk:
                    return
                with self._lock:
                    self.received += len(chunk)
                here.sendall(chunk)
            if here in readable:
                chunk = here.recv(_CHUNK)
                if not chunk:
                    return
                _send(there, chunk)


def _send(there: ssl.SSLSocket, chunk: bytes) -> None:
    left = memoryview(chunk)
    while left:
        try:
            left = left[there.send(left) :]
        except ssl.SSLWantWriteError:
            select.select([], [there], [], _SILENCE_S)
