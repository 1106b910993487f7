"""Which revisions of models no release needs any more, and how to be rid of them.

    unneeded_weights.py list --home DIR --keep OWNER/NAME@COMMIT...     as JSON, changes nothing
    unneeded_weights.py remove --home DIR --keep OWNER/NAME@COMMIT...   remove them, one line each

Only revisions that Tinderbox has verified here are looked at. Needed are those of `--keep`, and those of every
service's releases that stay startable (kept_releases.py). A revision that was here before Tinderbox stays, or of which
that is not known, as does a blob that another revision of the repository uses, and one of the client's store that
repositories share (weights_before.py).
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside import weights_stamp
    from modules.hostside.atomic import read_json
    from modules.hostside.kept_releases import kept, unread
    from modules.hostside.ledger import STATE
    from modules.hostside.weights_before import Before, before, brought, take_back
    from modules.hostside.weights_blobs import alone
else:
    import weights_stamp
    from atomic import read_json
    from kept_releases import kept, unread
    from ledger import STATE
    from weights_before import before, brought, take_back
    from weights_blobs import alone

Key = tuple[str, str]


@dataclass(frozen=True)
class Unneeded:
    """A revision that can go, and the blobs that go with it. `bytes`: what the disk gains. `had`: what was there."""

    repository: weights_stamp.Repository
    commit: str
    blobs: tuple[Path, ...]
    had: Before

    @property
    def bytes(self) -> int:
        """What the blobs occupy, but for those in the shared store."""
        return sum(blob.lstat().st_blocks * 512 for blob in self.blobs if blob.exists())


def released(root: Path = STATE) -> set[Key] | None:
    """Repository and commit of every release that stays startable; None where an entry can not be read."""
    releases = kept(root)
    return None if unread(releases) else {model for one in releases for model in one.models}


def unneeded(home: Path, needed: set[Key]) -> list[Unneeded]:
    """What can go, in the order of names."""
    found = []
    for path in sorted(weights_stamp.STAMPS.glob("*.json")):
        stamp = read_json(path)
        if stamp is None or "snapshot" not in stamp:
            continue
        repository, commit = weights_stamp.Repository(home, str(stamp["repository"])), str(stamp["commit"])
        had = before(repository)
        if repository.stamp(commit) != path or (repository.name, commit) in needed or had is None:
            continue
        if not had.had(repository.snapshot(commit), repository.folder):
            found.append(Unneeded(repository, commit, tuple(brought(repository, commit, had)), had))
    return found


def remove(revision: Unneeded) -> None:
    """Take it away. The stamp goes last, so that a cut leaves something that the next run finds and removes."""
    with alone(revision.repository):
        take_back(revision.repository, revision.commit, revision.had)


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("list", "remove"))
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--keep", nargs="*", default=[])
    arguments = parser.parse_args()
    keep = {(name, commit) for name, _, commit in (each.rpartition("@") for each in arguments.keep)}
    needed = released()
    found = [] if needed is None else unneeded(arguments.home, needed | keep)
    if arguments.verb == "list":
        print(
            json.dumps([{"revision": f"{each.repository.name}@{each.commit}", "bytes": each.bytes} for each in found])
        )
        return 0
    for each in found:
        size = each.bytes
        remove(each)
        print(f"removed {each.repository.name}@{each.commit}: {size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
