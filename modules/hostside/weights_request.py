"""What is to be fetched of a model, and what a hub says that it is."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

# Nothing about our machines is told to anyone; read when the client is imported.
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")

from huggingface_hub import HfApi
from huggingface_hub._tree_cache import TreeCacheEntry
from huggingface_hub.hf_api import RepoFile
from huggingface_hub.utils._paths import filter_repo_objects

if TYPE_CHECKING:
    from modules.hostside import weights_blobs as blobs
    from modules.hostside.weights_stamp import Repository, WantedFile, read_stamp, stamped_files
else:
    import weights_blobs as blobs
    from weights_stamp import Repository, WantedFile, read_stamp, stamped_files


@dataclass(frozen=True)
class Request:
    """What is wanted. `commit`: what the revision is pinned to, where that is known.

    `locked`: path → what the fleet's lock has of the commit's files.
    """

    endpoint: str
    repository: Repository
    revision: str
    commit: str | None
    filters: dict[str, list[str]]
    workers: int
    reserve_bytes: int
    token: str | None
    locked: dict[str, str]


def resolve(request: Request) -> tuple[str, list[WantedFile], dict[str, object] | None]:
    """The commit, its files, and the client's listing of it; of a commit verified here the hub is not asked again."""
    if request.commit is not None:
        stamp = read_stamp(request.repository, request.commit)
        # Of a home that was removed the stamp is left, and the listing of the commit is not.
        there = request.repository.tree(request.commit).exists()
        if stamp is not None and stamp["filters"] == request.filters and there:
            return request.commit, stamped_files(stamp), None
    api = HfApi(endpoint=request.endpoint, token=request.token or False)
    commit = request.commit or api.model_info(request.repository.name, revision=request.revision).sha
    if commit is None:
        raise blobs.GiveUpError("the hub named no commit for the revision")
    listed = api.list_repo_tree(request.repository.name, recursive=True, revision=commit)
    entries = [entry for entry in listed if isinstance(entry, RepoFile)]
    files = [
        WantedFile(
            path=entry.path,
            size=entry.lfs.size if entry.lfs is not None else entry.size,
            digest=entry.lfs.sha256 if entry.lfs is not None else entry.blob_id,
            lfs=entry.lfs is not None,
        )
        for entry in filter_repo_objects(
            entries,
            allow_patterns=request.filters["include"] or None,
            ignore_patterns=request.filters["exclude"] or None,
            key=lambda entry: entry.path,
        )
    ]
    if not files:
        raise blobs.GiveUpError(
            f"no file of {request.repository.name}@{commit} is left by its filters: {request.filters}"
        )
    return commit, files, {entry.path: _listed(entry) for entry in entries}


def require_locked(request: Request, commit: str, files: list[WantedFile]) -> None:
    """Refuse a hub that lists another content than it did when the fleet's lock was written: a commit never changes."""
    for file in files:
        known = request.locked.get(file.path, file.line)
        if known != file.line:
            raise blobs.GiveUpError(
                f"{request.repository.name}@{commit}, {file.path}: {request.endpoint} lists {file.line}, the fleet's "
                f"lock has {known}: a commit's files never change, so do not trust that hub (`network.hub`); if it is "
                "the lock that is wrong, take the entry out of it"
            )


def _listed(entry: RepoFile) -> dict[str, object]:
    """An entry as the client itself would write it down."""
    found = TreeCacheEntry(
        size=entry.size,
        blob_id=entry.blob_id,
        lfs_sha256=entry.lfs.sha256 if entry.lfs is not None else None,
        lfs_size=entry.lfs.size if entry.lfs is not None else None,
        xet_hash=entry.xet_hash,
    )
    return dict(found.to_json())
