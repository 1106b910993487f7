"""Bring a model's files from another hub cache of this host, without fetching a byte: by links, else by copies.

    link_weights.py --source FOLDER --repository OWNER/NAME --commit COMMIT --home HOME

FOLDER holds `models--…`. Hard links cost nothing; on another filesystem a copy is made, as a reference where the
filesystem can. Nothing is verified and nothing published here: the weights stage hashes what lies there, and fetches
what is wrong. Nothing is changed in FOLDER. Exit status: 0 all is there; 1 with the reason.
"""

from __future__ import annotations

import argparse
import errno
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.job_result import tell_result
    from modules.hostside.progress import Progress
    from modules.hostside.weights_before import note
    from modules.hostside.weights_stamp import Repository
else:
    from job_result import tell_result
    from progress import Progress
    from weights_before import note
    from weights_stamp import Repository

# As the hub's clients name them: SHA-1 of what git holds, SHA-256 of the rest.
_BLOB = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_KEPT_FREE = 2 * 1024**3
_ELSEWHERE = {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP}


def blobs_of(snapshot: Path) -> Iterator[tuple[str, Path]]:
    """(name, file) of each blob of the model's own that a commit's files are links to.

    The cache is its user's, so a link may lead anywhere: what is no blob of the hub's is passed over. By the words of
    the link, since the path may go through a process's own root, which can not be resolved.
    """
    blobs = snapshot.parents[1] / "blobs"
    for path in sorted(snapshot.rglob("*")):
        if path.is_symlink():
            file = Path(os.path.normpath(path.parent / path.readlink()))
            if file.parent == blobs and _BLOB.fullmatch(file.name) and _is_plain(file):
                yield file.name, file


def _is_plain(file: Path) -> bool:
    try:
        return stat.S_ISREG(file.lstat().st_mode)
    except OSError:
        return False


def bring(source: Path, folder: Path, progress: Progress) -> tuple[int, int]:
    """Have every blob in `folder`. Returns how many were linked and copied. Raises `OSError`."""
    folder.mkdir(parents=True, exist_ok=True)
    blobs = dict(blobs_of(source))
    missing = {name: file for name, file in blobs.items() if not (folder / name).exists()}
    linked = copied = 0
    total, done = sum(file.stat().st_size for file in missing.values()), 0
    for name, file in missing.items():
        place, part = folder / name, folder / f"{name}.tinderbox-link.incomplete"
        part.unlink(missing_ok=True)
        try:
            os.link(file, part)
            linked += 1
        except OSError as error:
            if error.errno not in _ELSEWHERE:
                raise
            size = file.stat().st_size
            if shutil.disk_usage(folder).free < size + _KEPT_FREE:
                raise OSError(errno.ENOSPC, f"no room for a copy of {size / 1024**3:.1f} GiB", str(folder)) from error
            # cp makes a reference of it where the filesystem can.
            subprocess.run(["cp", "--no-dereference", "--reflink=auto", "--", str(file), str(part)], check=True)
            copied += 1
        part.replace(place)
        done += place.stat().st_size
        progress.report("bringing", done, total, "bytes")
    return linked, copied


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--source", "--repository", "--commit", "--home"):
        parser.add_argument(name, required=True)
    options = parser.parse_args()
    model = f"models--{options.repository.replace('/', '--')}"
    source = Path(options.source, model, "snapshots", options.commit)
    try:
        if not source.is_dir():
            raise FileNotFoundError(errno.ENOENT, "no such commit there", str(source))
        note(Repository(Path(options.home), options.repository))
        linked, copied = bring(source, Path(options.home, "hub", model, "blobs"), Progress())
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"{socket.gethostname()}: {error}", file=sys.stderr)
        return 1
    tell_result({"linked": linked, "copied": copied})
    print(f"{options.repository}: {linked} files linked, {copied} copied")
    return 0


if __name__ == "__main__":
    sys.exit(main())
