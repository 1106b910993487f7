"""Layers and manifests of images as a registry keeps them: content by its digest, names that point to it.

<root>/blobs/<hex digits of the sha256>      layers, configurations and manifests
<root>/uploads/<id>                          what is still on its way
<root>/names/<name>/<tag>.json               {"digest", "mediaType", "blobs": what the manifest is made of}
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.atomic import read_json, write_json
else:
    from atomic import read_json, write_json

STORE = Path("/var/lib/tinderbox/registry")
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_NAME = re.compile(r"[a-z0-9]+([._-][a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_CHUNK = 1 << 20


class WrongContentError(Exception):
    """What came is not what its digest or its form promises."""


class Store:
    """A folder of images. `root` is not made before something is written."""

    def __init__(self, root: Path = STORE) -> None:
        self.root = root

    def blob(self, digest: str) -> Path | None:
        """The file of a digest, or None where there is none."""
        found = _DIGEST.fullmatch(digest)
        path = self.root / "blobs" / found[1] if found else None
        return path if path is not None and path.is_file() else None

    def begin(self) -> str:
        """Begin an upload. Returns its id."""
        upload = uuid.uuid4().hex
        self._upload(upload).parent.mkdir(parents=True, exist_ok=True)
        self._upload(upload).touch(mode=0o600)
        return upload

    def append(self, upload: str, chunks: Iterable[bytes]) -> int:
        """Add to an upload. Returns its size. Raises `KeyError`: there is no such upload."""
        path = self._upload(upload)
        if not path.is_file():
            raise KeyError(upload)
        with path.open("ab") as file:
            for chunk in chunks:
                file.write(chunk)
            return file.tell()

    def finish(self, upload: str, digest: str) -> None:
        """Give an upload its place. Raises `WrongContentError`: it has another digest; it is gone then."""
        path, found = self._upload(upload), _DIGEST.fullmatch(digest)
        if not path.is_file():
            raise KeyError(upload)
        if found is None or sha256_of(path) != found[1]:
            path.unlink()
            raise WrongContentError(f"the upload is not {digest}")
        with path.open("rb") as file:
            os.fsync(file.fileno())
        place = self.root / "blobs" / found[1]
        place.parent.mkdir(parents=True, exist_ok=True)
        path.replace(place)

    def put_manifest(self, name: str, reference: str, content: bytes, media_type: str) -> str:
        """Keep a manifest under a tag, or only under its digest. Returns the digest.

        Raises `WrongContentError`: it is no manifest, its digest is another one, or what it is made of is not here.
        """
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        parts = _parts(content)
        missing = [part for part in parts if self.blob(part) is None]
        if missing or not _NAME.fullmatch(name) or (reference != digest and not _TAG.fullmatch(reference)):
            raise WrongContentError(f"{name}:{reference} can not be kept; missing: {', '.join(missing) or 'nothing'}")
        upload = self.begin()
        self.append(upload, [content])
        self.finish(upload, digest)
        if reference != digest:
            place = self._name(name, reference)
            place.parent.mkdir(parents=True, exist_ok=True)
            write_json(place, {"digest": digest, "mediaType": media_type, "blobs": [digest, *parts]})
        return digest

    def manifest(self, name: str, reference: str) -> tuple[str, str, Path] | None:
        """Digest, media type and file of a manifest, by tag or digest; None where there is none."""
        if not _NAME.fullmatch(name):
            return None
        for tag, entry in self._tags(name):
            if reference in {tag, entry["digest"]} and (path := self.blob(str(entry["digest"]))) is not None:
                return str(entry["digest"]), str(entry["mediaType"]), path
        return None

    def images(self) -> dict[str, list[str]]:
        """`name:tag` → digests of all that it is made of."""
        names = sorted({path.parent for path in self.root.glob("names/**/*.json")})
        found: dict[str, list[str]] = {}
        for folder in names:
            name = folder.relative_to(self.root / "names").as_posix()
            found |= {f"{name}:{tag}": list(map(str, entry["blobs"])) for tag, entry in self._tags(name)}
        return found

    def unneeded(self, wanted: Iterable[str]) -> dict[str, int]:
        """Names of blobs that no image of `wanted` (`name:tag`) is made of → bytes; cut uploads among them."""
        images = self.images()
        kept = {digest.removeprefix("sha256:") for image in wanted for digest in images.get(image, ())}
        files = [*self.root.glob("blobs/*"), *self.root.glob("uploads/*")]
        return {path.name: path.stat().st_size for path in files if path.name not in kept}

    def keep_only(self, wanted: Iterable[str]) -> int:
        """Remove what no image of `wanted` is made of. Returns the bytes that came free."""
        names = set(wanted)
        unneeded = self.unneeded(names)
        for image in self.images():
            if image not in names:
                self._name(*image.rsplit(":", 1)).unlink()
        for name in unneeded:
            for folder in ("blobs", "uploads"):
                (self.root / folder / name).unlink(missing_ok=True)
        return sum(unneeded.values())

    def drop_damaged(self) -> list[str]:
        """Remove blobs that are not what their names say; they are then pushed anew. Returns their names."""
        damaged = [path for path in sorted(self.root.glob("blobs/*")) if sha256_of(path) != path.name]
        for path in damaged:
            path.unlink()
        return [path.name for path in damaged]

    def _tags(self, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
        for path in sorted((self.root / "names" / name).glob("*.json")):
            entry = read_json(path)
            if entry is not None:
                yield path.name.removesuffix(".json"), entry

    def _name(self, name: str, tag: str) -> Path:
        return self.root / "names" / name / f"{tag}.json"

    def _upload(self, upload: str) -> Path:
        return self.root / "uploads" / (upload if re.fullmatch(r"[0-9a-f]{32}", upload) else "none")


def sha256_of(path: Path) -> str:
    """Hex digits of a file's sha256."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _parts(content: bytes) -> list[str]:
    """Digests of what a manifest (or an index of manifests) is made of."""
    try:
        document = json.loads(content)
        listed = [document["config"], *document["layers"]] if "layers" in document else document["manifests"]
        return [str(part["digest"]) for part in listed]
    except (ValueError, KeyError, TypeError) as error:
        raise WrongContentError(f"not a manifest: {type(error).__name__}: {error}") from error
