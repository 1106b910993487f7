"""What some files of a host hold."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from pyinfra.api import QuoteString, StringCommand
from typing_extensions import override

from modules.facts.base import HostFact


@dataclass(frozen=True)
class FileState:
    """`mode`: octal digits as chmod takes them. `owner`: `user:group`."""

    sha256: str
    mode: str
    owner: str


class FileStates(HostFact[dict[str, FileState | None]]):
    """Path → what is there, None where no regular file is; all paths in one round trip.

    + paths: absolute paths
    + pattern: a shell pattern, for files whose whole path is not known
    """

    @override
    def command(self, paths: Sequence[str], pattern: str = "") -> StringCommand:
        return StringCommand(
            "for path in",
            *(*(QuoteString(path) for path in paths), pattern),
            '; do if test -f "$path"; then',
            'printf "%s %s %s\\n" "$(sha256sum < "$path" | cut -c 1-64)" "$(stat -L -c "%a %U:%G" "$path")" "$path";',
            'else printf "absent - - %s\\n" "$path"; fi; done',
        )

    @override
    def parse(self, lines: list[str]) -> dict[str, FileState | None]:
        states: dict[str, FileState | None] = {}
        for line in lines:
            digest, mode, owner, path = line.split(" ", 3)
            states[path] = None if digest == "absent" else FileState(digest, mode, owner)
        return states


class FileTexts(HostFact[dict[str, str]]):
    """Path → text of small files, all in one round trip; those that are no text, or not there, are left out.

    + paths: absolute paths
    """

    @override
    def command(self, paths: Sequence[str]) -> StringCommand:
        words = (QuoteString(path) for path in paths)
        return StringCommand(
            *("for path in", *words, '; do test -f "$path" || continue;'),
            'printf "%s %s\\n" "$(head -c 65536 "$path" | base64 -w 0)" "$path"; done; echo end',
        )

    @override
    def parse(self, lines: list[str]) -> dict[str, str]:
        texts: dict[str, str] = {}
        for line in lines:
            encoded, _, path = line.partition(" ")
            if path:
                with suppress(ValueError):
                    texts[path] = base64.b64decode(encoded).decode()
        return texts
