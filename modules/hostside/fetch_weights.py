"""Bring a model's files to this host and verify every one of them.

Runs in the tools' environment, as a job. What is there already is not fetched again; a file that is not what the hub
publishes is set aside under `<home>/tinderbox-set-aside`, and fetched anew, alone.

Writes the job's `result.json`: `commit` (what the revision stands for), `notes` (which files were wrong) and `files`
(path → hash and size, as the fleet's lock has them).

Exit status: 0 all files are there and right; 1 with the reason in the last lines.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

# Nothing about our machines is told to anyone; read when the client is imported.
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")


if TYPE_CHECKING:
    from modules.hostside import weights_blobs as blobs
    from modules.hostside.fetch_file import Source, StoppedError, fetch_file
    from modules.hostside.hub_errors import Asked, explain, proxy_to
    from modules.hostside.job_result import tell_result
    from modules.hostside.progress import Progress, Tally
    from modules.hostside.weights_request import Request, require_locked, resolve
    from modules.hostside.weights_stamp import Repository, WantedFile, is_commit
else:
    import weights_blobs as blobs
    from fetch_file import Source, StoppedError, fetch_file
    from hub_errors import Asked, explain, proxy_to
    from job_result import tell_result
    from progress import Progress, Tally
    from weights_request import Request, require_locked, resolve
    from weights_stamp import Repository, WantedFile, is_commit

_PUBLIC_HUB = "https://huggingface.co"


@contextmanager
def watched(repository: Repository, files: list[WantedFile], progress: Progress) -> Iterator[None]:
    """Report how many bytes are on the disk, whole files and pieces, by looking there."""
    wanted = {file.digest: file for file in files}.values()
    total = sum(file.size for file in wanted)
    ended = threading.Event()

    def size(path: Path) -> int:
        try:
            return path.stat().st_size
        except FileNotFoundError:
            return 0

    def on_disk() -> int:
        return sum(
            max(size(repository.blob(file)), size(blobs.part_of(repository, file, blobs.HUB_PART))) for file in wanted
        )

    def watch() -> None:
        while not ended.wait(0.5):
            progress.report("fetching", on_disk(), total, "bytes")

    progress.report("fetching", on_disk(), total, "bytes")
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def fetch(request: Request, commit: str, files: list[WantedFile]) -> None:
    """Gather the files that lack, several at once. The first trouble ends all; what was gathered stays."""
    repository = request.repository
    stopped = threading.Event()
    source = Source(request.endpoint, repository.name, commit, request.token, stopped)

    def one(file: WantedFile) -> None:
        try:
            fetch_file(source, file, blobs.part_of(repository, file, blobs.HUB_PART))
        except BaseException as error:
            stopped.set()
            error.add_note(file.path)
            raise

    ordered = sorted(blobs.lacking(repository, files), key=lambda file: file.size, reverse=True)
    with ThreadPoolExecutor(max_workers=request.workers) as pool:
        results = [pool.submit(one, file) for file in ordered]
        wait(results)
    errors = [error for error in (result.exception() for result in results) if error is not None]
    for error in sorted(errors, key=lambda error: isinstance(error, StoppedError)):
        raise error


def make_right(request: Request, commit: str, files: list[WantedFile], progress: Progress) -> list[str]:
    """Verify what is there, fetch what lacks and verify that, once more what was wrong; says what was."""
    repository = request.repository
    total = sum({file.digest: file.size for file in files}.values())
    present = Tally(progress, "verifying", total)
    notes = blobs.check_present(repository, commit, files, present.add)
    for note in notes:
        print(note)
    wrong: list[str] = []
    for _ in range(2):
        missing = blobs.lacking(repository, files)
        if not missing:
            break
        with watched(repository, files, progress):
            fetch(request, commit, files)
        tally = Tally(progress, "verifying", total, total - sum(file.size for file in missing))
        wrong = blobs.check_parts(repository, missing, blobs.HUB_PART, tally.add)
        notes += wrong
        for note in wrong:
            print(note)
    if blobs.lacking(repository, files):
        raise blobs.GiveUpError("the hub gave a file that is not the one it publishes, twice: " + "; ".join(wrong))
    return [note if "no such file" in note else f"{note}; it was fetched anew" for note in notes]


def run(request: Request, progress: Progress) -> None:
    """All of it."""
    with blobs.alone(request.repository):
        progress.report("asking the hub")
        commit, files, tree = resolve(request)
        require_locked(request, commit, files)
        blobs.require_space(request.repository, files, request.reserve_bytes)
        notes = make_right(request, commit, files, progress)
        blobs.publish(request.repository, request.revision, commit, files, filters=request.filters, tree=tree)
    tell_result({"commit": commit, "notes": notes, "files": {file.path: file.line for file in files}})
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
    parser.add_argument("--locked", type=Path, help="JSON: path → what the fleet's lock has of it")
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
        locked=json.loads(arguments.locked.read_text()) if arguments.locked else {},
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
    except blobs.GiveUpError as reason:
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
