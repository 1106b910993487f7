"""Say whether a bundle is whole: by the sizes of its files, or by their hashes.

    bundle_state.py DIRECTORY            by size (a look at every file, no reading)
    bundle_state.py DIRECTORY --hash     by sha256 of every file

Prints one JSON object: `key` (what it was exported for; null where it is not whole), `files`, `bytes`, `problems` (one
line each) and `lock` (what tags stood for where it was made). Exit status: 0; with --hash, 1 where something is wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.bundle import Bundle, BundleError, problem_of
else:
    from bundle import Bundle, BundleError, problem_of


def look(root: Path, *, hashes: bool) -> dict[str, Any]:
    """What `main` prints."""
    try:
        document = Bundle.open(root).document
    except BundleError as error:
        return {"key": None, "files": 0, "bytes": 0, "problems": [str(error)], "lock": {}}
    files = document["files"]
    found = [problem_of(root, file, (lambda _: None) if hashes else None) for file in files]
    return {
        "key": document["key"],
        "files": len(files),
        "bytes": sum(file["size"] for file in files),
        "problems": [problem for problem in found if problem is not None],
        "lock": document["lock"],
    }


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--hash", action="store_true")
    arguments = parser.parse_args()
    answer = look(arguments.directory, hashes=arguments.hash)
    print(json.dumps(answer))
    return 1 if arguments.hash and answer["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
