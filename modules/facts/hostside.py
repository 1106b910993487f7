"""Which of our programs a host has."""

from __future__ import annotations

from pyinfra.api import StringCommand
from typing_extensions import override

from modules.facts.base import HostFact

HOME = "/usr/local/lib/tinderbox"


class HostsidePrograms(HostFact[dict[str, str]]):
    """File name → sha256 of everything in the programs' directory, or `foreign` for what is not a file of root's.

    Python's own caches are left out: they follow the programs by themselves.
    """

    @override
    def command(self) -> StringCommand:
        return StringCommand(
            "echo begin; ! test -d",
            HOME,
            "|| { cd",
            HOME,
            "&& find . -mindepth 1 -maxdepth 1 ! -name __pycache__ -type f -user root -perm 644 -exec sha256sum {} +",
            "&& find . -mindepth 1 -maxdepth 1 ! -name __pycache__ ! '(' -type f -user root -perm 644 ')'",
            "-printf 'foreign  %p\\n'; }",
        )

    @override
    def parse(self, lines: list[str]) -> dict[str, str]:
        programs: dict[str, str] = {}
        for line in lines[1:]:
            digest, path = line.split(maxsplit=1)
            programs[path.removeprefix("./")] = digest
        return programs
