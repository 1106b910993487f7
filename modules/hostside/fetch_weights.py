"""Bring a model's files to this host and verify every one of them.

Runs in the tools' environment, as a job. What is there already is not fetched again; a file that is not what the hub
publishes is set aside under `<home>/tinderbox-set-aside`, and fetched anew, alone.

Writes the job's `result.json`: `commit` (what the revision stands for) and `notes` (which files were wrong).

Exit status: 0 all files are there and right; 1 with the reason in the last lines.
"""

from __future__ import annotations

import argparse
import fcntl
import glob
import json
import os
import shutil
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

# Nothing about our machines is told to anyone; read when the client is imported.
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")

from huggingface_hub import HfApi, snapshot_download
from huggingface_hub.hf_api import RepoFile
from huggingface_hub.utils._paths import filter_repo_objects

if TYPE_CHECKING:
    from modules.hostside.atomic import write_json, write_text
    from modules.hostside.hub_errors import Asked, explain, proxy_to
    from modules.hostside.progress import Progress
    from modules.hostside.weights_stamp import (
        Repository,
        WantedFile,
        broken,
        is_commit,
        read_stamp,
        stamped_files,
        write_stamp,
    )
else:
    from atomic import write_json, write_text
    from hub_errors import Asked, explain, proxy_to
    from progress import Progress
    from weights_stamp import Repository, WantedFile, broken, is_commit, read_stamp, stamped_files, write_stamp

_PUBLIC_HUB = "https://huggingface.co"
_GIB = 1024**3


class GiveUpError(Exception):
    """The reason why this host has not got the model."""


@dataclass(frozen=True)
class Request:
    """What is wanted. `commit`: what the revision is pinned to, where that is known."""

    endpoint: str
    repository: Repository
    revision: str
    commit: str | None
    filters: dict[str, list[str]]
    workers: int
    reserve_bytes: int
    token: str | None


def resolve(request: Request) -> tuple[str, list[WantedFile]]:
    """The commit, and its files; of a commit that was verified here before, the hub is not asked again."""
    if request.commit is not None:
        stamp = read_stamp(request.repository, request.commit)
        if stamp is not None and stamp["filters"] == request.filters:
            return request.commit, stamped_files(stamp)
    api = HfApi(endpoint=request.endpoint, token=request.token or False)
    commit = request.commit or api.model_info(request.repository.name, revision=request.revision).sha
    if commit is None:
        raise GiveUpError("the hub named no commit for the revision")
    tree = api.list_repo_tree(request.repository.name, recursive=True, revision=commit)
    files = [
        WantedFile(
            path=entry.path,
            size=entry.lfs.size if entry.lfs is not None else entry.size,
            digest=entry.lfs.sha256 if entry.lfs is not None else entry.blob_id,
            lfs=entry.lfs is not None,
        )
        for entry in filter_repo_objects(
            (entry for entry in tree if isinstance(entry, RepoFile)),
            allow_patterns=request.filters["include"] or None,
            ignore_patterns=request.filters["exclude"] or None,
            key=lambda entry: entry.path,
        )
    ]
    if not files:
        raise GiveUpError(f"no file of {request.repository.name}@{commit} is left by its filters: {request.filters}")
    return commit, files


def lacking(repository: Repository, files: list[WantedFile]) -> int:
    """How many bytes are still to come. A blob that is there is whole: the client renames it into place."""
    return sum({file.digest: file.size for file in files if not repository.blob(file).exists()}.values())


def require_space(request: Request, files: list[WantedFile]) -> None:
    """Refuse before the first byte what the disk can not hold."""
    need = lacking(request.repository, files)
    free = shutil.disk_usage(request.repository.home).free
    if need and free < need + request.reserve_bytes:
        raise GiveUpError(
            f"{request.repository.home} has {free / _GIB:.1f} GiB free; {request.repository.name} needs "
            f"{need / _GIB:.1f} GiB more and {request.reserve_bytes / _GIB:.1f} GiB must remain "
            "(hardware.reserve_disk_gib): make room, or set weights.home to a larger disk"
        )


@contextmanager
def watched(repository: Repository, files: list[WantedFile], progress: Progress) -> Iterator[None]:
    """Report how many bytes are on the disk, whole files and pieces, by looking there."""
    wanted = {file.digest: file.size for file in files}
    total = sum(wanted.values())
    ended = threading.Event()

    def on_disk() -> int:
        found = dict.fromkeys(wanted, 0)
        for path in (repository.folder / "blobs").glob("*"):
            digest = path.name.split(".", 1)[0]
            if digest in found:
                try:
                    found[digest] = max(found[digest], path.stat().st_size)
                except FileNotFoundError:
                    continue
        return sum(min(size, wanted[digest]) for digest, size in found.items())

    def watch() -> None:
        while not ended.wait(1.0):
            progress.report("fetching", on_disk(), total, "bytes")

    progress.report("fetching", on_disk(), total, "bytes")
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def fetch(request: Request, commit: str, files: list[WantedFile], progress: Progress) -> None:
    """Have the client fetch what is not there. Pieces that a killed client left behind are of no use to the next."""
    for piece in (request.repository.folder / "blobs").glob("*.incomplete"):
        piece.unlink(missing_ok=True)
    with watched(request.repository, files, progress):
        snapshot_download(
            request.repository.name,
            revision=commit,
            endpoint=request.endpoint,
            cache_dir=request.repository.home / "hub",
            allow_patterns=[glob.escape(file.path) for file in files],
            max_workers=request.workers,
            token=request.token or False,
        )


def find_broken(request: Request, commit: str, files: list[WantedFile], progress: Progress) -> dict[WantedFile, str]:
    """The files that are not what the hub publishes."""
    total = sum(file.size for file in files)
    lock = threading.Lock()
    done = 0

    def on_bytes(count: int) -> None:
        nonlocal done
        with lock:
            done += count
            progress.report("verifying", done, total, "bytes")

    progress.report("verifying", 0, total, "bytes")
    return broken(request.repository.snapshot(commit), files, on_bytes)


def set_aside(request: Request, commit: str, file: WantedFile) -> str:
    """Take a wrong file away from where the client would trust it, and keep it; says what became of it."""
    entry = request.repository.snapshot(commit) / file.path
    became = "it was fetched anew"
    if entry.exists():
        aside = request.repository.home / "tinderbox-set-aside" / request.repository.folder.name
        aside.mkdir(parents=True, exist_ok=True)
        kept = aside / f"{Path(file.path).name}.{file.digest[:12]}"
        Path(os.path.realpath(entry)).replace(kept)
        became = f"it was fetched anew, what was there is kept as {kept}"
    entry.unlink(missing_ok=True)
    return became


def make_right(request: Request, commit: str, files: list[WantedFile], progress: Progress) -> list[str]:
    """Fetch, verify, and once more what was wrong; says what was."""
    fetch(request, commit, files, progress)
    wrong = find_broken(request, commit, files, progress)
    notes = [f"{what}; {set_aside(request, commit, file)}" for file, what in wrong.items()]
    for note in notes:
        print(note)
    if not wrong:
        return notes
    fetch(request, commit, list(wrong), progress)
    again = find_broken(request, commit, list(wrong), progress)
    if again:
        raise GiveUpError("the hub gave a file that is not the one it publishes, twice: " + "; ".join(again.values()))
    return notes


def publish(request: Request, commit: str, files: list[WantedFile]) -> None:
    """Let others find the snapshot: the revision's name, the owner of the home, and at last the stamp."""
    reference = request.repository.reference(request.revision)
    if request.revision != commit:
        reference.parent.mkdir(parents=True, exist_ok=True)
        write_text(reference, commit)
    owner = request.repository.home.stat()
    for path in (request.repository.folder, *request.repository.folder.rglob("*")):
        if path.lstat().st_uid != owner.st_uid:
            os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
    verified_at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    write_stamp(request.repository, commit, request.filters, files, verified_at)


@contextmanager
def alone(repository: Repository) -> Iterator[None]:
    """Keep another fetch of the same model (for another service, say) waiting."""
    repository.folder.mkdir(parents=True, exist_ok=True)
    with (repository.folder / ".tinderbox.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run(request: Request, progress: Progress) -> None:
    """All of it."""
    with alone(request.repository):
        progress.report("asking the hub")
        commit, files = resolve(request)
        require_space(request, files)
        notes = make_right(request, commit, files, progress)
        publish(request, commit, files)
    own = os.environ.get("TINDERBOX_JOB_DIR")
    if own:
        write_json(Path(own) / "result.json", {"commit": commit, "notes": notes})
    print(json.dumps({"commit": commit, "files": len(files), "bytes": sum(file.size for file in files)}))


def parse(words: list[str] | None = None) -> Request:
    """The request on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repository", required=True)
    parser.add_argument("--revision", required=True)
    parser.add_argument("--commit")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--exclude", action="append", default=[])
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--reserve-bytes", type=int, default=0)
    parser.add_argument("--token-file", type=Path)
    arguments = parser.parse_args(words)
    return Request(
        endpoint=os.environ.get("HF_ENDPOINT", _PUBLIC_HUB).rstrip("/"),
        repository=Repository(arguments.home, arguments.repository),
        revision=arguments.revision,
        commit=arguments.commit or (arguments.revision if is_commit(arguments.revision) else None),
        filters={"include": arguments.include, "exclude": arguments.exclude},
        workers=arguments.workers,
        reserve_bytes=arguments.reserve_bytes,
        token=arguments.token_file.read_text().strip() if arguments.token_file else None,
    )


def attempt(request: Request) -> int:
    """All of it, with what goes wrong told on standard error."""
    asked = Asked(
        host=socket.gethostname(),
        endpoint=request.endpoint,
        repository=request.repository.name,
        revision=request.commit or request.revision,
        token=request.token is not None,
        proxy=proxy_to(request.endpoint),
    )
    try:
        run(request, Progress())
    except GiveUpError as reason:
        print(f"{asked.host}: {reason}", file=sys.stderr)
        return 1
    except Exception as error:
        if os.environ.get("TINDERBOX_DEBUG"):
            raise
        print(explain(error, asked), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(attempt(parse()))
