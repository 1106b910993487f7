"""A small registry: what docker needs to push an image (from this host only) and to pull it (from the fleet's others).

The OCI distribution protocol over HTTP/1.1; see https://github.com/opencontainers/distribution-spec.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.image_requests import SILENCE_S, _Handler
    from modules.hostside.image_store import Store
else:
    from image_requests import SILENCE_S, _Handler
    from image_store import Store


class Registry(ThreadingHTTPServer):
    """Serves a store at one address. `tls`: with it only who has a key of the fleet is let in, and only to read."""

    daemon_threads = True
    request_queue_size = 128
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], store: Store, tls: ssl.SSLContext | None = None) -> None:
        self.store, self.tls = store, tls
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._busy: set[int] = set()
        self._lock = threading.Lock()
        self.heard_at = time.monotonic()
        self.sent: dict[str, int] = {}
        super().__init__(address, _Handler)

    @property
    def connections(self) -> int:
        """How many are open now."""
        return len(self._busy)

    def count(self, what: str, size: int) -> None:
        """Note bytes that were sent."""
        with self._lock:
            self.sent[what] = self.sent.get(what, 0) + size

    def get_request(self) -> tuple[Any, Any]:
        """Accept; the handshake is left to the connection's own thread."""
        connection, address = super().get_request()
        connection.settimeout(SILENCE_S)
        if self.tls is not None:
            connection = self.tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, address

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve one connection, and count it while it lasts."""
        with self._lock:
            self._busy.add(id(request))
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.heard_at = time.monotonic()
            with self._lock:
                self._busy.discard(id(request))

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away, or have no key, are nothing to report."""


def mutual_tls(certificate: Path, authority: Path) -> ssl.SSLContext:
    """A server's context that lets in only who has a key signed by `authority`. `certificate`: PEM with its key."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority)
    return context
