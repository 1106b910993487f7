"""A gate's verdict, with a line for each metric that it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from modules.facts.parse.llama_benchy import Metric


class Verdict(StrEnum):
    """`WARN`: good enough to serve, and worse than expected."""

    PASS = "PASS"  # noqa: S105, no password
    WARN = "WARN"
    FAIL = "FAIL"


@dataclass(frozen=True)
class Line:
    """One metric. `reason`: which bound was crossed, or why there is no figure; empty for a pass."""

    metric: str
    verdict: Verdict
    measured: Metric | None
    reason: str = ""

    def text(self) -> str:
        """As shown to people."""
        figure = "-" if self.measured is None else f"{self.measured.mean:.2f} ± {self.measured.std:.2f}"
        return f"{self.verdict:<4}  {self.metric:<24} {figure:>20}  {self.reason}".rstrip()


@dataclass(frozen=True)
class Judgement:
    """The verdict of a gate, and the lines that it rests on."""

    verdict: Verdict
    lines: tuple[Line, ...]

    def text(self) -> str:
        """As shown to people: a line each."""
        return "\n".join(line.text() for line in self.lines)
