"""What a host has of the site's settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyinfra.api import QuoteString, StringCommand
from typing_extensions import override

from modules.facts.base import HostFact
from modules.facts.files import FileState, FileStates

CERTIFICATE = "/usr/local/share/ca-certificates/tinderbox-site.crt"
# What update-ca-certificates makes of it.
_LINK = "/etc/ssl/certs/tinderbox-site.pem"
_BUNDLE = "/etc/ssl/certs/ca-certificates.crt"


@dataclass(frozen=True)
class SiteState:
    """`trust_is_fresh`: whether the trust store was made anew since the site's certificate last came or went."""

    files: dict[str, FileState | None]
    trust_is_fresh: bool


class SiteSettings(HostFact[SiteState]):
    """The site's files and the freshness of the trust store.

    + paths: absolute paths of the files
    """

    @override
    def command(self, paths: Sequence[str]) -> StringCommand:
        certificate, link, bundle = QuoteString(CERTIFICATE), QuoteString(_LINK), QuoteString(_BUNDLE)
        return StringCommand(
            *("if test -e", certificate, "; then test", bundle, "-nt", certificate, "&& test -e", link),
            *("; else ! test -L", link, "; fi && echo fresh || echo stale;"),
            FileStates().command(paths),
        )

    @override
    def parse(self, lines: list[str]) -> SiteState:
        return SiteState(files=FileStates().parse(lines[1:]), trust_is_fresh=lines[0] == "fresh")
