"""Programs of ours, run on a host that has none of them, or whose own are to go: from a copy in its memory."""

from __future__ import annotations

import base64
import io
import tarfile
from collections.abc import Sequence
from functools import cache

from pyinfra.api import Host, QuoteString, StringCommand
from pyinfra.connectors.util import CommandOutput

from modules.operations.connection import connector_arguments
from modules.operations.hostside import programs

# Docker reckons the size of every layer, and apt plans; both take their time on a machine at work.
_LOOK_S, _CHANGE_S = 600, 3600
_RUN = (
    'folder="$(mktemp -d /run/tinderbox-at-hand.XXXXXXXX)" && trap \'rm -rf "$folder"\' EXIT && '
    'base64 -d | tar -xz -C "$folder" && PYTHONDONTWRITEBYTECODE=1 python3 "$folder/$0" "$@"'
)


@cache
def archive() -> str:
    """All of our programs, as standard input brings them."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in programs().items():
            if name.endswith(".py"):
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode = len(content), 0o644
                tar.addfile(entry, io.BytesIO(content))
    return base64.encodebytes(buffer.getvalue()).decode()


def command(program: str, words: Sequence[str]) -> StringCommand:
    """What runs the program that comes with `archive` by standard input."""
    return StringCommand("sh -c", QuoteString(_RUN), program, *map(QuoteString, words))


def run_at_hand(host: Host, program: str, words: Sequence[str], *, changes: bool = False) -> tuple[bool, CommandOutput]:
    """Run it in the way of the operation that is under way. Returns whether it succeeded, and what it said."""
    timeout = _CHANGE_S if changes else _LOOK_S
    given = connector_arguments(host) | {"_stdin": archive(), "_timeout": timeout}
    return host.run_shell_command(command(program, words), **given)
