"""Say whether a model on this host is what its hub publishes.

    verify_weights.py --repository OWNER/NAME --revision REV --home DIR           by size, time and inode (no reading)
    verify_weights.py --repository OWNER/NAME --revision REV --home DIR --hash    by hash of every file, on all cores

Prints one JSON object: `commit` (what the revision stands for here, or null), `stamped` (whether it was ever verified),
`filters`, `manifest`, `files`, `bytes` and `problems` (one line each); `hashed_s`: seconds that hashing took; `held`:
bytes that are there of the model, in whole files and in parts; this host's `addresses`, and `address`, the one that
leads outside. What hashing finds wrong is remembered, since a change that keeps size and time shows in no quick look:
the next run then fetches it anew. In a job, the problems go to its log. Exit status: 0; with --hash, 1 where the model
is not whole.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.addresses import outward_address, own_addresses
    from modules.hostside.progress import Progress, Tally
    from modules.hostside.weights_hashes import broken
    from modules.hostside.weights_stamp import Repository, condemn, read_stamp, stamped_files, stray_lines, touched
else:
    from addresses import outward_address, own_addresses
    from progress import Progress, Tally
    from weights_hashes import broken
    from weights_stamp import Repository, condemn, read_stamp, stamped_files, stray_lines, touched


def look(repository: Repository, revision: str, *, hashes: bool, progress: Progress | None = None) -> dict[str, Any]:
    """What `main` prints."""
    commit = repository.commit(revision)
    stamp = read_stamp(repository, commit) if commit is not None else None
    if stamp is None:
        return {
            "commit": commit,
            "stamped": False,
            "problems": [f"{repository.name}@{revision} was never verified here"],
        }
    files = stamped_files(stamp)
    started = time.monotonic()
    if hashes:
        tally = Tally(progress or Progress(), "hashing", sum(file.size for file in files))
        problems = sorted(broken(Path(stamp["snapshot"]), files, tally.add).values())
        # Whoever may only look still gets the answer.
        with contextlib.suppress(PermissionError):
            condemn(repository, stamp["commit"], problems)
        problems = problems + stray_lines(stamp)
    else:
        problems = touched(stamp)
    return {
        "commit": commit,
        "stamped": True,
        "filters": stamp["filters"],
        "manifest": stamp["manifest"],
        "files": len(files),
        "bytes": sum(file.size for file in files),
        "problems": problems,
        "hashed_s": round(time.monotonic() - started, 3) if hashes else None,
    }


def held(repository: Repository) -> int:
    """How many bytes of the model are on the disk, by what they occupy."""
    try:
        found = [entry.stat() for entry in os.scandir(repository.folder / "blobs")]
    except FileNotFoundError:
        return 0
    return sum(min(each.st_size, each.st_blocks * 512) for each in found)


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repository", required=True)
    parser.add_argument("--revision", required=True)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--hash", action="store_true")
    arguments = parser.parse_args()
    repository = Repository(arguments.home, arguments.repository)
    answer = look(repository, arguments.revision, hashes=arguments.hash)
    answer |= {"held": held(repository), "addresses": own_addresses(), "address": outward_address()}
    if arguments.hash and "TINDERBOX_JOB_DIR" in os.environ:
        for problem in answer["problems"]:
            print(f"{socket.gethostname()}: {problem}", file=sys.stderr)
        if not answer["problems"]:
            print(
                f"{answer['files']} files, {answer['bytes']} bytes, {answer['hashed_s']} s: as the hub publishes them"
            )
    else:
        print(json.dumps(answer))
    return 1 if arguments.hash and answer["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
