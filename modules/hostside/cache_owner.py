"""Files of root's in a user's Hugging Face cache, which containers have written there: found, and given to the user.

    cache_owner.py repair HOME

They can neither be renewed nor removed by whose cache it is. Only what lies in HOME is touched, no link is followed,
no file system is left, and a file with another name (a hard link) is left alone: that may lie elsewhere. HOME has to
look like a Hugging Face home, and belong to somebody else than root. Prints what was done; exit status 1: nothing was.
"""

from __future__ import annotations

import os
import pwd
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# What a Hugging Face client keeps in its home; one of them has to be there.
_MARKS = ("hub", "xet", "datasets", "assets", "token")
_SHOWN = 3


@dataclass
class Owned:
    """`files`: so many of root's, folders and links among them. `linked`: those of them that have another name, too."""

    home: str
    owner: str
    files: int = 0
    bytes: int = 0
    linked: int = 0
    examples: tuple[str, ...] = ()


def user_homes() -> list[Path]:
    """The caches that users have at their usual place."""
    found = (Path(user.pw_dir, ".cache", "huggingface") for user in pwd.getpwall() if user.pw_uid >= 1000)
    return sorted({path for path in found if path.is_dir() and not path.is_symlink()})


def refusal(home: Path) -> str | None:
    """Why nothing is to be repaired there; None: it may be."""
    if home.is_symlink() or not home.is_dir():
        return f"{home} is no folder"
    if not any((home / mark).exists() for mark in _MARKS):
        return f"{home} does not look like a Hugging Face home: it has none of {', '.join(_MARKS)}"
    return f"{home} is root's own" if home.stat().st_uid == 0 else None


def _roots(home: Path) -> Iterator[tuple[int, str, os.stat_result, str]]:
    """Folder's descriptor, name, what it is, and where, of each of root's."""
    device = home.stat().st_dev
    for folder, names, files, descriptor in os.fwalk(home, follow_symlinks=False):
        for name in (*names, *files):
            try:
                found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            except FileNotFoundError:
                continue
            if found.st_dev != device:
                if name in names:
                    names.remove(name)
            elif found.st_uid == 0:
                yield descriptor, name, found, f"{folder}/{name}"


def _has_other_name(found: os.stat_result) -> bool:
    return not stat.S_ISDIR(found.st_mode) and found.st_nlink > 1


def look(home: Path) -> Owned | None:
    """What is root's there; None where nothing is, or where that is none of ours to repair."""
    if refusal(home) is not None:
        return None
    uid = home.stat().st_uid
    seen = Owned(str(home), _name(uid))
    for _, _, found, path in _roots(home):
        seen.files += 1
        seen.bytes += found.st_blocks * 512
        seen.linked += _has_other_name(found)
        if len(seen.examples) < _SHOWN:
            seen.examples = (*seen.examples, path)
    return seen if seen.files else None


def repair(home: Path) -> int:
    """Give them to whom the cache belongs. Returns how many. Raises `ValueError`: see `refusal`."""
    why = refusal(home)
    if why is not None:
        raise ValueError(why)
    owner, count = home.stat(), 0
    for descriptor, name, found, _ in _roots(home):
        if not _has_other_name(found):
            # By the folder that is open: what lies at the path may be exchanged for a link meanwhile.
            os.chown(name, owner.st_uid, owner.st_gid, dir_fd=descriptor, follow_symlinks=False)
            count += 1
    return count


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def main(arguments: list[str]) -> int:
    """Entry point."""
    if len(arguments) != 2 or arguments[0] != "repair":
        sys.stderr.write((__doc__ or "").splitlines()[2].strip() + "\n")
        return 2
    home = Path(arguments[1])
    try:
        count = repair(home)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{count} files in {home} belong to {_name(home.stat().st_uid)} now")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
