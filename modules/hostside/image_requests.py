"""What a registry is asked, and answers."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from modules.hostside.image_registry import Registry
    from modules.hostside.image_store import WrongContentError
else:
    from image_store import WrongContentError


_PATH = re.compile(r"/v2/(?P<name>.+)/(?P<kind>blobs/uploads|blobs|manifests)/(?P<reference>[^/]*)")
_RANGE = re.compile(r"bytes=(\d+)-(\d*)")
_CHUNK = 1 << 20
# Docker is silent while it unpacks a layer, and an idle connection of a dead receiver shall not last for ever.
SILENCE_S = 300.0


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "tinderbox"
    sys_version = ""
    disable_nagle_algorithm = True
    server: Registry

    def do_GET(self) -> None:
        self._read()

    def do_HEAD(self) -> None:
        self._read()

    def do_POST(self) -> None:
        self._write()

    def do_PATCH(self) -> None:
        self._write()

    def do_PUT(self) -> None:
        self._write()

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002, the base class's name
        sys.stdout.write(f"{self.client_address[0]} {format % arguments}\n")
        sys.stdout.flush()

    def _read(self) -> None:
        if urlsplit(self.path).path in {"/v2", "/v2/"}:
            self._answer(200, b"{}")
            return
        found = _PATH.fullmatch(urlsplit(self.path).path)
        if found is not None and found["kind"] == "manifests":
            manifest = self.server.store.manifest(found["name"], found["reference"])
            if manifest is not None:
                digest, media_type, path = manifest
                self._answer(200, path.read_bytes(), {"Docker-Content-Digest": digest, "Content-Type": media_type})
                return
        elif found is not None and found["kind"] == "blobs":
            blob = self.server.store.blob(found["reference"])
            if blob is not None:
                self._send_blob(blob, found["reference"])
                return
        kind = "MANIFEST_UNKNOWN" if found is not None and found["kind"] == "manifests" else "BLOB_UNKNOWN"
        self._error(404, kind, self.path)

    def _write(self) -> None:
        url = urlsplit(self.path)
        found = _PATH.fullmatch(url.path)
        if self.server.tls is not None or found is None:
            self.close_connection = True  # its body is not read
            self._error(405, "UNSUPPORTED", "only the host itself may push")
            return
        query = {key: values[-1] for key, values in parse_qs(url.query).items()}
        try:
            self._take(found["name"], found["kind"], found["reference"], query)
        except WrongContentError as error:
            self._error(400, "DIGEST_INVALID", str(error))
        except KeyError:
            self._error(404, "BLOB_UPLOAD_UNKNOWN", found["reference"])
        except OSError as error:
            self.close_connection = True
            print(f"tinderbox: {self.server.store.root}: {error.strerror or error}", flush=True)
            self._error(507, "UNKNOWN", f"{self.server.store.root}: {error.strerror or error}")

    def _take(self, name: str, kind: str, reference: str, query: Mapping[str, str]) -> None:
        store = self.server.store
        if kind == "manifests" and self.command == "PUT":
            digest = store.put_manifest(name, reference, b"".join(self._body()), self.headers.get("Content-Type", ""))
            self._answer(201, headers={"Docker-Content-Digest": digest, "Location": f"/v2/{name}/manifests/{digest}"})
            return
        if kind != "blobs/uploads":
            self._error(405, "UNSUPPORTED", self.path)
            return
        known = query.get("mount") or query.get("digest") if self.command == "POST" else None
        if known is not None and store.blob(known) is not None:
            digest = known
            list(self._body())
        else:
            upload = store.begin() if self.command == "POST" else reference
            size = store.append(upload, self._body())
            if "digest" not in query:
                place = f"/v2/{name}/blobs/uploads/{upload}"
                self._answer(202, headers={"Location": place, "Range": f"0-{max(0, size - 1)}"})
                return
            digest = query["digest"]
            store.finish(upload, digest)
        place = f"/v2/{name}/blobs/{digest}"
        self._answer(201, headers={"Docker-Content-Digest": digest, "Location": place})

    def _body(self) -> Iterator[bytes]:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            while size := int(self.rfile.readline().split(b";", 1)[0], 16):
                yield from self._exactly(size)
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass
        else:
            yield from self._exactly(int(self.headers.get("Content-Length") or 0))

    def _exactly(self, size: int) -> Iterator[bytes]:
        while size:
            chunk = self.rfile.read(min(size, _CHUNK))
            if not chunk:
                raise ConnectionError("the sender went away")
            size -= len(chunk)
            yield chunk

    def _send_blob(self, path: Path, digest: str) -> None:
        size = path.stat().st_size
        wanted = _RANGE.fullmatch(self.headers.get("Range", ""))
        first = int(wanted[1]) if wanted else 0
        last = min(int(wanted[2]), size - 1) if wanted and wanted[2] else size - 1
        headers = {"Docker-Content-Digest": digest, "Content-Type": "application/octet-stream"}
        if wanted:
            headers["Content-Range"] = f"bytes {first}-{last}/{size}"
        self._start(206 if wanted else 200, last - first + 1, headers)
        if self.command == "HEAD":
            return
        with path.open("rb") as file:
            file.seek(first)
            left = last - first + 1
            while left > 0 and (chunk := file.read(min(left, _CHUNK))):
                self.wfile.write(chunk)
                left -= len(chunk)
                self.server.count(digest, len(chunk))

    def _answer(self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        self._start(status, len(body), headers or {"Content-Type": "application/json"})
        if self.command != "HEAD":
            self.wfile.write(body)

    def _start(self, status: int, size: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Docker-Distribution-API-Version": "registry/2.0", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(size))
        self.end_headers()

    def _error(self, status: int, code: str, message: str) -> None:
        self._answer(status, json.dumps({"errors": [{"code": code, "message": message}]}).encode())
