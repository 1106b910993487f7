"""What preflight finds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class Severity(Enum):
    """BLOCKED: nothing is done on this host. SLOW: it will serve, but not at its speed. NOTE: good to know."""

    BLOCKED = "blocked"
    SLOW = "slow"
    NOTE = "note"


@dataclass(frozen=True)
class Finding:
    """`measured` against `wanted` (empty for a note), and what to do about it."""

    severity: Severity
    what: str
    measured: str
    wanted: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        wanted = f"; wanted: {self.wanted}" if self.wanted else ""
        remedy = f". What to do: {self.remedy}" if self.remedy else ""
        return f"{self.what}: {self.measured}{wanted}{remedy}"


def blocking(findings: Iterable[Finding]) -> list[Finding]:
    """Those that stop the host."""
    return [finding for finding in findings if finding.severity is Severity.BLOCKED]
