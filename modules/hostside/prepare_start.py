"""Before a server starts: its caches by what they depend on now, and a note of what the machine is. `ExecStartPre=`.

    prepare_start.py SERVICE

Exit status: 0 all is prepared; 1 not, and why.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.caches import use
    from modules.hostside.ledger import Ledger
    from modules.hostside.start_note import write_start
    from modules.hostside.versions import image_id, versions
else:
    from caches import use
    from ledger import Ledger
    from start_note import write_start
    from versions import image_id, versions


def prepare(ledger: Ledger, invocation: str) -> str:
    """Do it. Returns what is told of it. Raises `OSError`, and `SystemExit` where no release is in force."""
    release = ledger.linked("current")
    entry: dict[str, Any] | None = ledger.entry(release) if release is not None else None
    if entry is None:
        raise SystemExit(f"prepare-start: refused: {ledger.directory}/current names no release that can be read")
    reference = str(entry["release"]["image"])
    found, _ = versions(image_id(reference))
    root = ledger.directory.parents[1]
    name = use(ledger.service, entry.get("caches") or (), found, reference, root) if entry.get("caches") else "none"
    write_start(ledger, invocation, found)
    return f"prepare-start: caches: {name}"


def main(arguments: list[str]) -> int:
    """Entry point."""
    if len(arguments) != 1:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    try:
        print(prepare(Ledger(arguments[0]), os.environ.get("INVOCATION_ID", "")))
    except OSError as error:
        print(f"prepare-start: refused: {error}. Make room, or look at the disk's state")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
