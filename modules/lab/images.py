"""The image of lab hosts (and of the mirror, which is one with another program)."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

import docker
from docker.errors import APIError, BuildError, ImageNotFound

from modules.lab.errors import LabError
from modules.lab.layout import HOST_REPOSITORY, IMAGE_LABEL, ROOTFS_REPOSITORY
from modules.lab.pieces.piece import Piece
from modules.lab.pieces.rootfs import ARCHIVE

_CONTEXT = Path(__file__).parent / "image"


def host_image(client: docker.DockerClient, rootfs: Piece) -> str:
    """Tag of the host image, which is built unless it is there."""
    context = build_context()
    base = f"{ROOTFS_REPOSITORY}:{rootfs.key}"
    tag = f"{HOST_REPOSITORY}:{hashlib.sha256(rootfs.key.encode() + context).hexdigest()[:12]}"
    if _exists(client, tag):
        return tag
    if not _exists(client, base):
        client.api.import_image_from_file(
            str(rootfs.path / ARCHIVE), ROOTFS_REPOSITORY, rootfs.key, changes=[f"LABEL {IMAGE_LABEL}=rootfs"]
        )
    try:
        client.images.build(
            fileobj=io.BytesIO(context), custom_context=True, tag=tag, buildargs={"ROOTFS": base},
            labels={IMAGE_LABEL: "host"}, rm=True, forcerm=True,
        )  # fmt: skip
    except BuildError as error:
        log = "".join(f"    {line.get('stream', '')}" for line in error.build_log)
        raise LabError(f"the lab's host image does not build: {error}\n{log}") from error
    return tag


def remove_images(client: docker.DockerClient) -> list[str]:
    """Remove the lab's images that no container uses any more. Returns their tags."""
    removed = []
    # Children first: an image with descendants can not be removed.
    for kind in ("host", "rootfs"):
        for image in client.images.list(filters={"label": f"{IMAGE_LABEL}={kind}"}):
            try:
                client.images.remove(str(image.id))
                removed += image.tags
            except APIError:
                continue  # another lab's
    return removed


def _exists(client: docker.DockerClient, tag: str) -> bool:
    try:
        client.images.get(tag)
    except ImageNotFound:
        return False
    return True


def build_context() -> bytes:
    """The build context as a tar that depends on names, modes and contents only."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path in sorted(_CONTEXT.rglob("*")):
            entry = archive.gettarinfo(path, path.relative_to(_CONTEXT).as_posix())
            entry.uid = entry.gid = entry.mtime = 0
            entry.uname = entry.gname = ""
            entry.mode = 0o755 if path.is_dir() or "lib" in path.parts else 0o644
            with path.open("rb") if path.is_file() else io.BytesIO() as content:
                archive.addfile(entry, content if path.is_file() else None)
    return buffer.getvalue()
