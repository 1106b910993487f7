"""Layer access of a removal: the key, the rule of sudo and the membership in group docker that opened the host.

Without them the next command needs the user's password again, so it is asked for by its own name, goes last of all,
and in one go.
"""

from __future__ import annotations

import os
import pwd
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.former_files import formers, have_back
    from modules.hostside.ledger import STATE
    from modules.hostside.removal import ACCESS, Thing
else:
    from former_files import formers, have_back
    from ledger import STATE
    from removal import ACCESS, Thing

KEY, MEMBER, RULE = "key", "member of group docker", "rule of sudo"
SUDOERS = Path("/etc/sudoers.d")
# A key's comment says that Tinderbox put it there.
_OURS = re.compile(r" tinderbox:( |$)")
_AWAY = "/ tinderbox: /d; / tinderbox:$/d"


def members(state: Path = STATE) -> list[str]:
    """Users whom Tinderbox has put into group docker."""
    try:
        return sorted(set((state / "undo" / "docker-group").read_text(encoding="utf-8").split()))
    except OSError:
        return []


def has_our_key(file: Path) -> bool:
    """Whether a file of authorized keys, which is its user's and may be anything, has a line of ours."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    with os.fdopen(descriptor, "r", encoding="utf-8", errors="replace") as lines:
        return any(_OURS.search(line.rstrip("\n")) for line in lines)


def things(state: Path = STATE, sudoers: Path = SUDOERS) -> Iterator[Thing]:
    """What there is of this layer."""
    for user in pwd.getpwall():
        file = Path(user.pw_dir, ".ssh", "authorized_keys")
        if has_our_key(file):
            yield Thing(ACCESS, KEY, f"of {user.pw_name}", data={"user": user.pw_name, "file": str(file)})
    for name in members(state):
        yield Thing(ACCESS, MEMBER, name)
    for path in sorted(sudoers.glob("tinderbox-*")):
        yield Thing(ACCESS, RULE, str(path), note="the next command needs the user's password")


def take(thing: Thing, state: Path = STATE) -> None:
    """Have it gone."""
    if thing.kind == KEY:
        # As the user: the file is theirs, and may lead anywhere.
        words = ["runuser", "-u", str(thing.data["user"]), "--", "sed", "-i", _AWAY, str(thing.data["file"])]
        subprocess.run(words, check=True, capture_output=True)
    elif thing.kind == MEMBER:
        subprocess.run(["gpasswd", "--delete", thing.name, "docker"], check=False, capture_output=True)
        left = [name for name in members(state) if name != thing.name]
        note = state / "undo" / "docker-group"
        note.write_text("".join(f"{name}\n" for name in left), encoding="utf-8") if left else note.unlink()
    else:
        records = [one for one in formers() if str(one.path) == thing.name]
        for one in records:
            have_back(one)
        if not records:
            Path(thing.name).unlink(missing_ok=True)


def tidy(state: Path = STATE) -> None:
    """Take away the folders of what was noted, where nothing else is there."""
    for folder in sorted((path for path in state.rglob("*") if path.is_dir()), reverse=True) if state.is_dir() else ():
        if folder.is_relative_to(state / "undo") and not any(folder.iterdir()):
            folder.rmdir()
    if state.is_dir() and not any(state.iterdir()):
        state.rmdir()
