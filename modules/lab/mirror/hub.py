"""The Hugging Face hub's protocol, as far as `huggingface_hub` needs it to list and download models.

Layout: `<owner>/<name>/hub.json` with `refs` (branch or tag → commit) and `commits` (commit → its files, each with
`path`, `size`, `oid` (git blob sha1) and, for LFS files, `sha256`), and `gated` where a token is needed; the files
themselves in `<owner>/<name>/<commit>/`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NotRequired, TypedDict
from urllib.parse import unquote

from .message import Request, Response, Site, as_json, not_found, text


class HubFile(TypedDict):
    """One file of a commit. `sha256` is null for files that git holds itself."""

    path: str
    size: int
    oid: str
    sha256: str | None


class HubIndex(TypedDict):
    """What `hub.json` holds. `gated`: sha256 of the one token with which files are given; anybody may list them."""

    refs: dict[str, str]
    commits: dict[str, list[HubFile]]
    gated: NotRequired[str]


def hub_site(*roots: Path) -> Site:
    """Serve `/api/models/...` and `/<owner>/<name>/resolve/<revision>/<path>`; of several roots, what each has."""

    def serve(request: Request) -> Response:
        parts = [unquote(part) for part in request.path.strip("/").split("/")]
        match parts:
            case ["api", "models", owner, name, *rest]:
                return _api(_root(roots, f"{owner}/{name}"), f"{owner}/{name}", rest)
            case [owner, name, "resolve", revision, *path] if path:
                root = _root(roots, f"{owner}/{name}")
                refusal = _gate(_index(root, f"{owner}/{name}"), request)
                return refusal or _resolve(root, f"{owner}/{name}", revision, "/".join(path))
        return not_found(request)

    return serve


def _gate(index: HubIndex | None, request: Request) -> Response | None:
    """The refusal of who may not have the files."""
    if index is None or "gated" not in index:
        return None
    said = next((value for name, value in request.headers.items() if name.lower() == "authorization"), "")
    if hashlib.sha256(said.removeprefix("Bearer ").encode()).hexdigest() == index["gated"]:
        return None
    # As the real hub: 401 to nobody, 403 to somebody else.
    return text(403 if said else 401, "Access to this model is restricted", {"X-Error-Code": "GatedRepo"})


def _root(roots: Sequence[Path], repository: str) -> Path:
    return next((root for root in roots if _index(root, repository) is not None), roots[0])


def _api(root: Path, repository: str, rest: list[str]) -> Response:
    index = _index(root, repository)
    if index is None:
        return _no_repository(repository)
    kind, revision = (rest[0], rest[1]) if len(rest) >= 2 else ("revision", "main")
    commit = _commit(index, revision)
    if commit is None:
        return _no_revision(repository, revision)
    files = index["commits"][commit]
    if kind == "tree":
        return as_json([_tree_entry(file) for file in files])
    siblings = [{"rfilename": file["path"]} for file in files]
    return as_json(
        {
            "_id": commit[:24],
            "id": repository,
            "modelId": repository,
            "sha": commit,
            "private": False,
            "gated": False,
            "siblings": siblings,
        }
    )


def _resolve(root: Path, repository: str, revision: str, path: str) -> Response:
    index = _index(root, repository)
    if index is None:
        return _no_repository(repository)
    commit = _commit(index, revision)
    if commit is None:
        return _no_revision(repository, revision)
    file = next((file for file in index["commits"][commit] if file["path"] == path), None)
    if file is None:
        return text(404, "Entry not found", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit})
    headers = {
        "Content-Type": "application/octet-stream",
        "X-Repo-Commit": commit,
        "ETag": f'"{file["sha256"] or file["oid"]}"',
    }
    if file["sha256"]:
        headers |= {"X-Linked-Etag": headers["ETag"], "X-Linked-Size": str(file["size"])}
    return Response(headers=headers, file=root / repository / commit / path)


def _index(root: Path, repository: str) -> HubIndex | None:
    path = root / repository / "hub.json"
    if not path.resolve().is_relative_to(root.resolve()) or not path.is_file():
        return None
    index: HubIndex = json.loads(path.read_text())
    return index


def _commit(index: HubIndex, revision: str) -> str | None:
    commit = index["refs"].get(revision, revision)
    return commit if commit in index["commits"] else None


def _tree_entry(file: HubFile) -> dict[str, object]:
    entry: dict[str, object] = {"type": "file", "path": file["path"], "size": file["size"], "oid": file["oid"]}
    if file["sha256"]:
        entry["lfs"] = {"oid": file["sha256"], "size": file["size"], "pointerSize": 134}
    return entry


def _no_repository(repository: str) -> Response:
    # The real hub says 401 to a client without a token, so that private names do not leak. The code is the same.
    return text(
        404,
        f"Repository {repository} not found",
        {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"},
    )


def _no_revision(repository: str, revision: str) -> Response:
    message = f"Invalid rev id: {revision}"
    return text(404, f"{repository}: {message}", {"X-Error-Code": "RevisionNotFound", "X-Error-Message": message})
