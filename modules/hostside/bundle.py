"""A bundle: a directory with all that hosts would else fetch from outside, and a manifest of hashes.

    manifest.json                         what is in it, with size and sha256 of every file; only once it is whole
    manifest.part.json                    the same, of an export that is under way or was cut
    images/<name>.tar                     container images, as `docker save` writes them
    hub/models--<owner>--<name>/blobs/    files of models, each once, named by the hub's own hash
    encodings/                            tiktoken vocabularies
    wheels/                               Python packages of the tools

It may lie on a disk that knows neither links nor modes (exFAT).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.hashing import OnBytes, hash_of_file
else:
    from hashing import OnBytes, hash_of_file

MANIFEST, UNFINISHED = "manifest.json", "manifest.part.json"
FORMAT = 1


class BundleError(Exception):
    """What is wrong with a bundle, where, and what to do."""


@dataclass(frozen=True)
class Bundle:
    """A whole one. `document`: its manifest."""

    root: Path
    document: dict[str, Any]

    @classmethod
    def open(cls, root: Path) -> Bundle:
        """The bundle at `root`. Raises `BundleError` where there is none that is whole."""
        manifest = root / MANIFEST
        try:
            document = json.loads(manifest.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise BundleError(_absent(root)) from None
        except (OSError, ValueError) as error:
            raise BundleError(f"{manifest} can not be read ({error}): copy or export the bundle anew") from None
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise BundleError(f"{manifest} is of another form than this version of Tinderbox reads: export it anew")
        return cls(root, document)

    def image(self, name: str) -> dict[str, Any]:
        """The image of that name. Raises `BundleError` where there is none."""
        images = self.document["images"]
        found = next((image for image in images if image["name"] == name), None)
        if found is None:
            raise BundleError(self._lacks(f"image {name}", [image["name"] for image in images]))
        return dict(found)

    def model(self, repository: str, revision: str, commit: str | None) -> dict[str, Any]:
        """A model at a commit, or at what its revision stood for. Raises `BundleError` where there is none."""
        models = self.document["models"]
        for model in models:
            wanted = model["commit"] == commit if commit is not None else revision in model["revisions"]
            if model["repository"] == repository and wanted:
                return dict(model)
        there = [f"{model['repository']}@{model['commit']}" for model in models]
        raise BundleError(self._lacks(f"model {repository}@{commit or revision}", there))

    def require(self, path: str, on_bytes: OnBytes = lambda _: None) -> Path:
        """A file of the bundle, read whole. Raises `BundleError` where it is not what the manifest says."""
        wanted = next((file for file in self.document["files"] if file["path"] == path), None)
        if wanted is None:
            raise BundleError(f"{self.root / MANIFEST} names no file {path}: export the bundle anew")
        problem = problem_of(self.root, wanted, on_bytes)
        if problem is not None:
            raise BundleError(f"{problem}: copy it again, or export the bundle anew")
        return self.root / path

    def _lacks(self, what: str, there: list[str]) -> str:
        return (
            f"{self.root / MANIFEST} holds no {what}; it holds: {', '.join(sorted(there)) or 'none'}. Export it anew "
            "from a host that was converged with these settings, or take network.bundle out to fetch from outside"
        )


def _absent(root: Path) -> str:
    if (root / UNFINISHED).exists():
        return (
            f"{root} is not whole, its export was cut or is under way: run deploys/bundle.py again, then copy it again"
        )
    return f"there is no {root / MANIFEST} on this host: is the disk mounted, and does network.bundle name its folder?"


def problem_of(root: Path, file: dict[str, Any], on_bytes: OnBytes | None) -> str | None:
    """What is wrong with a file of the manifest, or None. Without `on_bytes` its size alone is looked at."""
    path = root / file["path"]
    try:
        size = path.stat().st_size
        if size != file["size"]:
            return f"{path} has {size} bytes, the manifest says {file['size']}"
        found = sha256_of(path, on_bytes) if on_bytes is not None else file["sha256"]
    except FileNotFoundError:
        return f"{path} is missing"
    except OSError as error:
        return f"{path} can not be read: {error.strerror}"
    return None if found == file["sha256"] else f"{path} is altered: sha256 {found}, the manifest says {file['sha256']}"


def sha256_of(path: Path, on_bytes: OnBytes = lambda _: None) -> str:
    """A file's hash. Raises `OSError` where it can not be read."""
    return hash_of_file(path, hashlib.sha256(), on_bytes)
