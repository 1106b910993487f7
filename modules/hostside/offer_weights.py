"""Describe a verified model so that other hosts can take it from this one.

    offer_weights.py --repository OWNER/NAME --commit COMMIT --home DIR

Runs as a job, on a host that has all of it. Its `result.json`: `commit`, `filters`, `files`, `tree` (the client's
listing of the commit), `name`, `piece_bytes` and `pieces` (base64). The hashes of the pieces are kept beside the stamp.
"""

from __future__ import annotations

import argparse
import base64
import secrets
import socket
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.atomic import read_json, write_json
    from modules.hostside.job_result import tell_result
    from modules.hostside.progress import Progress, Tally
    from modules.hostside.swarm_pieces import hashes, ordered, piece_bytes, pieces
    from modules.hostside.weights_stamp import Repository, read_stamp, stamped_files, touched
else:
    from atomic import read_json, write_json
    from job_result import tell_result
    from progress import Progress, Tally
    from swarm_pieces import hashes, ordered, piece_bytes, pieces
    from weights_stamp import Repository, read_stamp, stamped_files, touched


def offer(repository: Repository, commit: str, progress: Progress) -> dict[str, object]:
    """What the controller passes on. Raises `ValueError`: the model is not here, or no longer as it was verified."""
    stamp = read_stamp(repository, commit)
    problems = [f"{repository.name}@{commit} was never verified here"] if stamp is None else touched(stamp)
    if stamp is None or problems:
        raise ValueError("; ".join(problems))
    kept = repository.stamp(commit).with_suffix(".pieces.json")
    cut = read_json(kept)
    if cut is None or cut.get("manifest") != stamp["manifest"]:
        files = ordered(stamped_files(stamp))
        size = piece_bytes(sum(file.size for file in files))
        tally = Tally(progress, "cutting into pieces", sum(file.size for file in files))
        found = hashes([repository.blob(file) for file in files], pieces(files, size), tally.add)
        if None in found:
            raise ValueError(f"{repository.folder}: a file became shorter while it was read")
        joined = b"".join(digest for digest in found if digest is not None)
        text = base64.b64encode(joined).decode()
        # Whoever does not know the name can not take part, so it is drawn by lot, and the file for root only.
        name = secrets.token_hex(20)
        cut = {"manifest": stamp["manifest"], "piece_bytes": size, "pieces": text, "name": name}
        write_json(kept, cut, mode=0o600)
    listing = read_json(repository.tree(commit))
    return {
        "commit": commit,
        "filters": stamp["filters"],
        "files": [asdict(file) for file in stamped_files(stamp)],
        "tree": listing.get("files") if listing is not None else None,
        **{key: cut[key] for key in ("name", "piece_bytes", "pieces")},
    }


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repository", required=True)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--home", type=Path, required=True)
    arguments = parser.parse_args()
    try:
        found = offer(Repository(arguments.home, arguments.repository), arguments.commit, Progress())
    except (OSError, ValueError) as error:
        print(f"{socket.gethostname()}: {error}", file=sys.stderr)
        return 1
    tell_result(found, mode=0o600)
    return 0


if __name__ == "__main__":
    sys.exit(main())
