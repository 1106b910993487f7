"""The base image, laid out as the lab's registry serves it."""

from __future__ import annotations

import gzip
import hashlib
import json
import platform
import shutil
from pathlib import Path

from modules.lab.pieces.piece import Piece
from modules.lab.pieces.rootfs import ARCHIVE, base_rootfs

IMAGE, TAG = "python", "3.11-slim-bookworm"
_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
_CONFIG = "application/vnd.docker.container.image.v1+json"
_LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_CREATED = "2026-01-01T00:00:00Z"


def registry() -> Piece:
    """`python:3.11-slim-bookworm`: not the official image, but Debian's own Python in the same place in the world."""
    rootfs = base_rootfs()

    def build(folder: Path) -> None:
        blobs = folder / "blobs"
        blobs.mkdir()
        layer, diff_id = _add_layer(rootfs.path / ARCHIVE, blobs)
        config = {
            "architecture": _ARCHITECTURES[platform.machine()],
            "os": "linux",
            "created": _CREATED,
            "config": {
                "Cmd": ["python3"],
                "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"],
            },
            "rootfs": {"type": "layers", "diff_ids": [diff_id]},
            "history": [{"created": _CREATED, "created_by": "tinderbox lab"}],
        }
        config_blob = _add_blob(json.dumps(config).encode(), blobs)
        manifest = {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": {"mediaType": _CONFIG, **_descriptor(blobs / config_blob)},
            "layers": [{"mediaType": _LAYER, **_descriptor(blobs / layer)}],
        }
        manifests = folder / IMAGE / "manifests"
        manifests.mkdir(parents=True)
        digest = _add_blob(json.dumps(manifest).encode(), manifests)
        (folder / IMAGE / "tags.json").write_text(json.dumps({TAG: digest}))

    return Piece("registry", ["1", IMAGE, TAG], build, (rootfs,))


def _add_layer(archive: Path, blobs: Path) -> tuple[str, str]:
    compressed = blobs / "layer"
    # A fixed time stamp: the digest depends on the archive only.
    with archive.open("rb") as source, compressed.open("wb") as raw, gzip.GzipFile("", "wb", 1, raw, mtime=0) as target:
        shutil.copyfileobj(source, target, 1 << 20)
    digest = _digest(compressed)
    compressed.rename(blobs / digest)
    return digest, _digest(archive)


def _add_blob(content: bytes, folder: Path) -> str:
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    (folder / digest).write_bytes(content)
    return digest


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def _descriptor(path: Path) -> dict[str, object]:
    return {"digest": path.name, "size": path.stat().st_size}
