"""Small text files that Tinderbox owns on a host: placed by rename, taken away when no longer wanted, and undoable.

The first time that a path is touched, what was there is kept below `UNDO`: the file itself, or a `.absent` marker.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass

from pyinfra.api import QuoteString, StringCommand

from modules.facts.files import FileState

UNDO = "/var/lib/tinderbox/undo/files"

# Two runs may settle one file at once: each writes to a name of its own, and whose copy of the former file comes second
# may hold what the other has placed already, so it is never put over the first.
_KEEP_FORMER = (
    'keep="$1$2"; if ! test -e "$keep" && ! test -e "$keep.absent"; then mkdir -p "$(dirname "$keep")";'
    ' if test -e "$2"; then cp -p "$2" "$keep.new.$$"; mv -n "$keep.new.$$" "$keep"; rm -f "$keep.new.$$";'
    ' else : > "$keep.absent"; fi; fi'
)
_PLACE = (
    f'set -e; {_KEEP_FORMER}; mkdir -p "$(dirname "$2")"; fresh="$(mktemp "$2.tinderbox-XXXXXXXX")";'
    " trap 'rm -f \"$fresh\"' EXIT; trap 'exit 2' HUP INT TERM;"
    ' cat > "$fresh"; chown root:root "$fresh"; chmod "$3" "$fresh"; target="$2"; shift 3;'
    ' test $# -eq 0 || "$@" "$fresh"; mv -f "$fresh" "$target"'
)
_TAKE_AWAY = f'set -e; {_KEEP_FORMER}; rm -f "$2"'


@dataclass(frozen=True)
class ManagedFile:
    """A file as it should be, owned by root. `content`: text that ends in a newline; None: no file should be there.

    `check`: the words of a program that gets the new file's path behind them, and must find it right before it takes
    its place.
    """

    path: str
    content: str | None
    mode: str = "644"
    check: tuple[str, ...] = ()


def is_settled(file: ManagedFile, found: FileState | None) -> bool:
    """Whether the host has the file as it should be."""
    if file.content is None or found is None:
        return file.content is None and found is None
    digest = hashlib.sha256(file.content.encode()).hexdigest()
    return found == FileState(sha256=digest, mode=file.mode, owner="root:root")


def unsettled(files: Iterable[ManagedFile], found: Mapping[str, FileState | None]) -> list[ManagedFile]:
    """The files that the host does not have as they should be."""
    return [file for file in files if not is_settled(file, found.get(file.path))]


def placing(file: ManagedFile) -> tuple[str, ...]:
    """The words of the command that places a file, whose content it takes from standard input."""
    return ("sh", "-c", _PLACE, "place", UNDO, file.path, file.mode, *file.check)


def settle(files: Iterable[ManagedFile]) -> Generator[StringCommand, None, None]:
    """The commands that place or take away each file. Content goes by standard input: it is in no process list."""
    for file in files:
        if file.content is None:
            yield StringCommand("sh -c", QuoteString(_TAKE_AWAY), "take-away", UNDO, QuoteString(file.path))
        else:
            yield StringCommand(*(QuoteString(word) for word in placing(file)), _stdin=file.content)
