"""A docker registry that images can be pulled from (the read half of the OCI distribution protocol).

Layout: `<image>/tags.json` (tag → digest), `<image>/manifests/<digest>`, `blobs/<digest>`; digests with `sha256:`.
"""

from __future__ import annotations

import json
from pathlib import Path

from .message import Request, Response, Site, as_json

_VERSION = {"Docker-Distribution-API-Version": "registry/2.0"}


def registry_site(*roots: Path) -> Site:
    """Serve `/v2/`, tags, manifests and blobs; of several folders, from the first that has the image."""
    sites = [_site(root) for root in roots]

    def serve(request: Request) -> Response:
        answer = Response(404)
        for site in sites:
            answer = site(request)
            if answer.status == 200:
                break
        return answer

    return serve


def _site(root: Path) -> Site:
    def serve(request: Request) -> Response:
        if request.path in {"/v2", "/v2/"}:
            return as_json({}, headers=_VERSION)
        prefix, _, rest = request.path.partition("/v2/")
        image, _, reference = rest.rpartition("/")
        image, _, kind = image.rpartition("/")
        if prefix or not image or not _inside(root / image, root) or not (root / image / "tags.json").is_file():
            return _error(404, "NAME_UNKNOWN", f"no image {image!r} in this registry")
        tags: dict[str, str] = json.loads((root / image / "tags.json").read_text())
        if kind == "tags" and reference == "list":
            return as_json({"name": image, "tags": sorted(tags)}, headers=_VERSION)
        digest = tags.get(reference, reference)
        if kind == "manifests" and digest in tags.values():
            return _manifest(root / image / "manifests" / digest)
        blob = root / "blobs" / digest
        if kind == "blobs" and _inside(blob, root) and blob.is_file():
            return Response(
                headers={**_VERSION, "Content-Type": "application/octet-stream", "Docker-Content-Digest": digest},
                file=blob,
            )
        return _error(
            404, "MANIFEST_UNKNOWN" if kind == "manifests" else "BLOB_UNKNOWN", f"no {kind} {reference!r} of {image}"
        )

    return serve


def _manifest(path: Path) -> Response:
    body = path.read_bytes()
    media_type = str(json.loads(body)["mediaType"])
    return Response(headers={**_VERSION, "Content-Type": media_type, "Docker-Content-Digest": path.name}, body=body)


def _error(status: int, code: str, message: str) -> Response:
    return as_json({"errors": [{"code": code, "message": message}]}, status, _VERSION)


def _inside(path: Path, root: Path) -> bool:
    return path.resolve().is_relative_to(root.resolve())
