"""What apt has installed, and where it gets it from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyinfra.api import QuoteString, StringCommand
from typing_extensions import override

from modules.facts.base import HostFact
from modules.facts.files import FileState, FileStates


@dataclass(frozen=True)
class PackageState:
    """`installed`: its version, None where it is not installed whole. `files`: of the source that was asked about.

    `mentions`: sources file → lines that name the repository's address.
    """

    installed: str | None
    files: dict[str, FileState | None]
    mentions: dict[str, tuple[str, ...]]


class AptPackage(HostFact[PackageState]):
    """A package and its source in one round trip.

    + package: name of the package
    + paths: files of the source
    + uri: address of the repository, to find other sources that have it
    """

    @override
    def command(self, package: str, paths: Sequence[str] = (), uri: str | None = None) -> StringCommand:
        sources = "/etc/apt/sources.list /etc/apt/sources.list.d"
        mentions = ("grep -rHsF -e", QuoteString(uri), sources, "| sed 's/^/mention /';") if uri is not None else ()
        return StringCommand(
            *("dpkg-query -W -f 'installed ${db:Status-Abbrev} ${Version}\n'", QuoteString(package), "2>/dev/null;"),
            *(*mentions, "echo files;", FileStates().command(paths)),
        )

    @override
    def parse(self, lines: list[str]) -> PackageState:
        divide = lines.index("files")
        installed: str | None = None
        mentions: dict[str, tuple[str, ...]] = {}
        for kind, _, rest in (line.partition(" ") for line in lines[:divide]):
            if kind == "installed":
                state, _, version = rest.rpartition(" ")
                installed = version if state.strip().endswith("i") else None
            else:
                path, _, text = rest.partition(":")
                mentions[path] = (*mentions.get(path, ()), text)
        return PackageState(installed, FileStates().parse(lines[divide + 1 :]), mentions)


class AptVersions(HostFact[tuple[str, ...]]):
    """The versions of a package that apt could install from the lists it has, newest first.

    + package: name of the package
    """

    @override
    def command(self, package: str) -> StringCommand:
        return StringCommand("echo begin; apt-cache madison", QuoteString(package))

    @override
    def parse(self, lines: list[str]) -> tuple[str, ...]:
        rows = [[cell.strip() for cell in line.split("|")] for line in lines[1:]]
        return tuple(dict.fromkeys(row[1] for row in rows if len(row) == 3))
