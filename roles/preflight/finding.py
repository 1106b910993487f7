"""What preflight and check find."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from modules.catalog import load_catalog


class Severity(Enum):
    """BLOCKED: a deploy can not be done on this host. SLOW: it will serve, but not at its speed. NOTE: good to know."""

    BLOCKED = "blocked"
    SLOW = "slow"
    NOTE = "note"


@dataclass(frozen=True)
class Finding:
    """`measured` against `wanted` (empty for a note), what it costs, and what to do about it.

    `id`: of the catalog's findings. `commands`: of the remedy, for the host's shell, in this order. `settings`: of the
    remedy, key of the host's settings → value. `stage`: the later one that refuses the host; empty: nothing is begun.
    """

    severity: Severity
    what: str
    measured: str
    wanted: str = ""
    remedy: str = ""
    id: str = ""
    cost: str = ""
    commands: tuple[str, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)
    stage: str = ""

    def __str__(self) -> str:
        wanted = f"; wanted: {self.wanted}" if self.wanted else ""
        cost = f". What it costs: {self.cost}" if self.cost else ""
        remedy = f". What to do: {self.remedy}" if self.remedy else ""
        stage = f" (stage {self.stage} refuses the host because of it)" if self.stage else ""
        return f"{self.what}: {self.measured}{wanted}{cost}{stage}{remedy}"


def found(
    id_: str,
    what: str,
    measured: str,
    wanted: str = "",
    remedy: str = "",
    *,
    severity: Severity | None = None,
    cost: str | None = None,
    commands: Iterable[str] = (),
    settings: Mapping[str, object] | None = None,
) -> Finding:
    """A finding of the catalog; what is not given is as it says there. Raises `KeyError`: it is not there."""
    known = load_catalog().findings[id_]
    severity = severity or Severity(known.severity[0])
    stage = (known.stage or "") if severity is Severity.BLOCKED else ""
    cost = known.cost if cost is None else cost
    return Finding(severity, what, measured, wanted, remedy, id_, cost, tuple(commands), settings or {}, stage)


def blocking(findings: Iterable[Finding]) -> list[Finding]:
    """Those that stop the host before anything is begun."""
    return [finding for finding in findings if finding.severity is Severity.BLOCKED and not finding.stage]


def shell(commands: Iterable[str]) -> str:
    """Commands in a sentence."""
    return ", then ".join(f"`{command}`" for command in commands)
