"""The tiktoken vocabularies on a host."""

from __future__ import annotations

from pyinfra.api import QuoteString, StringCommand

from modules.facts.base import HostFact
from modules.release import layout


class EncodingDigests(HostFact[dict[str, str]]):
    """Name → sha256 of the content, for every file and link in the encodings' directory; they are small."""

    def command(self) -> StringCommand:
        """One round trip; a line of its own says that there was an answer."""
        directory = QuoteString(str(layout.ENCODINGS))
        return StringCommand(
            *("echo begin; ! test -d", directory, "|| { cd", directory),
            "&& find -L . -maxdepth 1 -type f -exec sha256sum {} +; }",
        )

    def parse(self, lines: list[str]) -> dict[str, str]:
        """Lines of sha256sum after the first one."""
        digests: dict[str, str] = {}
        for line in lines[1:]:
            digest, path = line.split(maxsplit=1)
            digests[path.removeprefix("./")] = digest
        return digests
