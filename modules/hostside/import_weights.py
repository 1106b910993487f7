"""Bring a model's files from a bundle to this host: each is hashed before it gets its name. Nothing is fetched.

Runs with the system's Python, as a job. Writes the job's `result.json`: `commit` (what the revision stood for where the
bundle was made) and `notes` (which files that were here before were wrong). Exit status: 0 all files are there and
right; 1 with the reason in the last lines.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside import weights_blobs as blobs
    from modules.hostside.bundle import Bundle, BundleError
    from modules.hostside.job_result import tell_result
    from modules.hostside.progress import Progress, Tally
    from modules.hostside.weights_hashes import hub_hash
    from modules.hostside.weights_stamp import Repository, WantedFile, is_commit
else:
    import weights_blobs as blobs
    from bundle import Bundle, BundleError
    from job_result import tell_result
    from progress import Progress, Tally
    from weights_hashes import hub_hash
    from weights_stamp import Repository, WantedFile, is_commit

_PIECE = 8 * 1024 * 1024
_REMEDY = "copy it again, or export the bundle anew"


def bring(bundle: Bundle, folder: str, repository: Repository, file: WantedFile, tally: Tally) -> None:
    """Copy a file's content, hash it on the way, and give it its name. Raises `BundleError` where it is not whole."""
    source, part = bundle.root / folder / "blobs" / file.digest, blobs.part_of(repository, file, blobs.HUB_PART)
    found = hub_hash(file.size, lfs=file.lfs)
    try:
        with source.open("rb") as given, part.open("wb") as taken:
            while piece := given.read(_PIECE):
                taken.write(piece)
                found.update(piece)
                tally.add(len(piece))
            taken.flush()
            os.fsync(taken.fileno())
        if found.hexdigest() != file.digest:
            raise BundleError(f"{source} ({file.path}) is altered: {_REMEDY}")
        part.replace(repository.blob(file))
    except FileNotFoundError:
        raise BundleError(f"{source} ({file.path}) is missing: {_REMEDY}") from None
    finally:
        part.unlink(missing_ok=True)


def run(wish: argparse.Namespace, progress: Progress) -> None:
    """All of it."""
    bundle = Bundle.open(wish.bundle)
    repository = Repository(wish.home, wish.repository)
    known = wish.commit or (wish.revision if is_commit(wish.revision) else None)
    model = bundle.model(wish.repository, wish.revision, known)
    filters = {"include": wish.include, "exclude": wish.exclude}
    if model["filters"] != filters:
        raise BundleError(
            f"{bundle.root} holds other files of {repository.name} (those of {model['filters']}) than are wanted "
            f"({filters}): export it anew with these settings"
        )
    files = [WantedFile(**file) for file in model["files"]]
    with blobs.alone(repository):
        blobs.require_space(repository, files, wish.reserve_bytes)
        total = sum({file.digest: file.size for file in files}.values())
        notes = blobs.check_present(repository, model["commit"], files, Tally(progress, "verifying", total).add)
        (repository.folder / "blobs").mkdir(exist_ok=True)
        missing = blobs.lacking(repository, files)
        copied = Tally(progress, "copying", sum(file.size for file in missing))
        for file in missing:
            bring(bundle, model["folder"], repository, file, copied)
        blobs.publish(repository, wish.revision, model["commit"], files, filters=filters, tree=model["tree"])
    tell_result({"commit": model["commit"], "notes": notes, "files": {file.path: file.line for file in files}})
    print(json.dumps({"commit": model["commit"], "files": len(files), "bytes": total}))


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--repository", required=True)
    parser.add_argument("--revision", required=True)
    parser.add_argument("--commit")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--exclude", action="append", default=[])
    parser.add_argument("--reserve-bytes", type=int, default=0)
    try:
        run(parser.parse_args(), Progress())
    except (BundleError, blobs.GiveUpError) as error:
        print(f"{socket.gethostname()}: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{socket.gethostname()}: {error.filename or ''}: {error.strerror or error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
