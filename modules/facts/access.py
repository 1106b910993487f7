"""Who gets in on a host: what the user's login has."""

from __future__ import annotations

from dataclasses import dataclass

from pyinfra.api import QuoteString, StringCommand
from typing_extensions import override

from modules.facts.base import HostFact


@dataclass(frozen=True)
class AccessState:
    """`user`: who is logged in. `admitted`: the key stands in their authorized_keys. `in_docker`: their group."""

    user: str
    admitted: bool
    in_docker: bool


class Access(HostFact[AccessState]):
    """Asked by the user, without sudo.

    + key: `type base64` of a public key
    """

    @override
    def command(self, key: str) -> StringCommand:
        return StringCommand(
            "id -un; if grep -v '^[[:space:]]*#' ~/.ssh/authorized_keys 2>/dev/null | grep -qF --",
            QuoteString(key),
            '; then echo admitted; else echo unknown; fi; id -nG "$(id -un)"',
        )

    @override
    def parse(self, lines: list[str]) -> AccessState:
        user, admitted, groups = lines[-3:]  # a login banner may come first
        return AccessState(user, admitted == "admitted", "docker" in groups.split())
