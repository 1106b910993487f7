"""The HTTPS server: picks the site by the Host header, applies faults, sends files in ranges, keeps the journal."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from .faults import Fault, Faults
from .journal import Journal
from .message import Request, Response, Site, text
from .ranges import UnsatisfiableRangeError, parse_range

_CHUNK = 1 << 20
_IDLE_SECONDS = 120.0
# Longer than any client waits.
_STALL_SECONDS = 90.0


class MirrorServer(ThreadingHTTPServer):
    """Serves `sites` (host name → site) on one address."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(
        self,
        address: tuple[str, int],
        sites: Mapping[str, Site],
        faults: Faults,
        journal: Journal,
        tls: ssl.SSLContext | None,
    ) -> None:
        self.sites, self.faults, self.journal, self._tls = sites, faults, journal, tls
        super().__init__(address, _Handler)

    def get_request(self) -> tuple[Any, Any]:
        """Accept; the handshake is left to the worker's thread, so that no slow client holds up the others."""
        connection, address = super().get_request()
        connection.settimeout(_IDLE_SECONDS)
        if self._tls is not None:
            connection = self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, address

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away are nothing to report."""


def tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """A server's context with this certificate chain."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "tinderbox-lab-mirror"
    disable_nagle_algorithm = True
    server: MirrorServer

    def __getattr__(self, name: str) -> Any:
        """Every method is answered by the same function: the base class looks for `do_<METHOD>`."""
        if name.startswith("do_"):
            return self._answer
        raise AttributeError(name)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the base class
        """The journal says more."""

    def _answer(self) -> None:
        url = urlsplit(self.path)
        host = self.headers.get("Host", "").rpartition(":")[0] or self.headers.get("Host", "")
        request = Request(host, self.command, unquote(url.path), dict(parse_qsl(url.query)), dict(self.headers.items()))
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        fault = self.server.faults.match(request)
        status, sent = 0, 0
        try:
            if fault is not None:
                time.sleep(fault.delay_s)
            status, sent = self._send(request, fault)
        finally:
            self.server.journal.write(
                client=self.client_address[0], host=host, method=self.command, path=request.path,
                range=self.headers.get("Range"), status=status, bytes=sent, fault=fault is not None,
            )  # fmt: skip

    def _send(self, request: Request, fault: Fault | None) -> tuple[int, int]:
        if fault is not None and fault.drop:
            self._hang_up()
            return 0, 0
        if fault is not None and fault.status is not None:
            response = Response(fault.status, fault.headers, fault.body.encode())
        else:
            response = self._respond(request)
        if response.file is not None and response.status == 200:
            return self._send_file(response, response.file, fault or Fault())
        self._start(response.status, response.headers, len(response.body))
        if self.command != "HEAD":
            self.wfile.write(response.body)
        return response.status, len(response.body)

    def _respond(self, request: Request) -> Response:
        site = self.server.sites.get(request.host)
        if site is None:
            return text(421, f"no site {request.host!r} here; there are: {', '.join(sorted(self.server.sites))}\n")
        if self.command not in {"GET", "HEAD"}:
            return text(405, "this mirror is read-only\n", {"Allow": "GET, HEAD"})
        return site(request)

    def _send_file(self, response: Response, path: Path, fault: Fault) -> tuple[int, int]:
        size = path.stat().st_size
        try:
            part = parse_range(self.headers.get("Range"), size)
        except UnsatisfiableRangeError:
            self._start(416, {"Content-Range": f"bytes */{size}"}, 0)
            return 416, 0
        first, last = part or (0, size - 1)
        headers = {**response.headers, "Accept-Ranges": "bytes"}
        if part is not None:
            headers["Content-Range"] = f"bytes {first}-{last}/{size}"
        status, length = (206 if part else 200), last - first + 1
        self._start(status, headers, length if fault.length is None else fault.length)
        if self.command == "HEAD":
            return status, 0
        return status, self._copy(path, first, length, fault)

    def _copy(self, path: Path, first: int, length: int, fault: Fault) -> int:
        ends = [end for end in (length, fault.cut_after, fault.stall_after) if end is not None]
        wanted = min(ends)
        sent = 0
        with path.open("rb") as file:
            file.seek(first)
            while sent < wanted:
                chunk = file.read(min(_CHUNK, wanted - sent))
                self.wfile.write(_flipped(chunk, fault.flip_at, first + sent))
                sent += len(chunk)
        if wanted < length and wanted == fault.stall_after:
            time.sleep(_STALL_SECONDS)
        if wanted < length or fault.length is not None:
            self._hang_up()
        return sent

    def _start(self, status: int, headers: Mapping[str, str], length: int) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def _hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)


def _flipped(chunk: bytes, at: int | None, offset: int) -> bytes:
    """The chunk, which begins at `offset` of its file, with the byte at `at` of the file turned over."""
    if at is None or not offset <= at < offset + len(chunk):
        return chunk
    changed = bytearray(chunk)
    changed[at - offset] ^= 0xFF
    return bytes(changed)
