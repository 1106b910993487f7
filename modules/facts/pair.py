"""What a host is of a service that spans hosts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyinfra.api import QuoteString, StringCommand

from modules.facts.base import HostFact
from modules.release import layout

PROGRAM = str(layout.PROGRAMS / "pair_state.py")


@dataclass(frozen=True)
class PairState:
    """`key`: fingerprint of the members' key. `files`: path → sha256, None where absent. `agent`: systemd's word.

    `active`, `enabled`: of the service's unit. `order`, `report`: what head and worker last said; None: nothing lately.
    """

    key: str | None = None
    files: Mapping[str, str | None] = field(default_factory=dict)
    agent: str = "unknown"
    agent_enabled: bool = False
    current: str | None = None
    last_good: str | None = None
    active: str = "unknown"
    enabled: bool = False
    order: Mapping[str, Any] | None = None
    report: Mapping[str, Any] | None = None


class ServicePair(HostFact[PairState]):
    """Of one service; None before Tinderbox's programs are on the host."""

    def command(self, *, service: str, files: list[str]) -> StringCommand:  # noqa: D102
        words = [QuoteString(word) for word in (service, *files)]
        return StringCommand("! test -e", PROGRAM, "||", layout.PYTHON, PROGRAM, *words)

    def parse(self, lines: list[str]) -> PairState:  # noqa: D102
        return PairState(**json.loads(lines[-1]))
