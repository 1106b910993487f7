"""Whether sudo asks for a password."""

from __future__ import annotations

from dataclasses import dataclass

from pyinfra.api import StringCommand
from typing_extensions import override

from modules.facts.base import HostFact


@dataclass(frozen=True)
class SudoState:
    """`user`: who is logged in. `free`: whether they get root by sudo without a password."""

    user: str
    free: bool


class Sudo(HostFact[SudoState]):
    """Asked without sudo, of course."""

    @override
    def command(self) -> StringCommand:
        return StringCommand("id -un; if sudo -n true 2>/dev/null; then echo free; else echo asks; fi")

    @override
    def parse(self, lines: list[str]) -> SudoState:
        user, answer = lines[-2:]  # a login banner may come first
        return SudoState(user, answer == "free")
