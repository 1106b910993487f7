"""One comparison → verdict, and whether more runs could change it."""

from __future__ import annotations

from dataclasses import dataclass

from modules.gating.judgement import Verdict
from modules.gating.significance import Estimate, otherwise

# A figure known so much better than what it is held against gains next to nothing by more runs.
WELL_KNOWN = 0.5


@dataclass(frozen=True)
class Risks:
    """Of one comparison at one look: to call worse what is not, and to call good what is worse."""

    false_alarm: float
    miss: float


@dataclass(frozen=True)
class Comparison:
    """An estimate, and the bounds that it is held against, in the estimate's own scale.

    `told`: what is said of it when it crosses a bound. A failure must also differ significantly from zero: that is a
    fixed bound itself, and no change where a change is estimated.
    """

    estimate: Estimate
    warn: float | None
    fail: float | None
    told: str

    def verdict(self, risks: Risks) -> Verdict:
        """By where the figure lies; a failure that could be chance is a warning."""
        worse = self.estimate.worse
        if self.fail is not None and worse > self.fail:
            return Verdict.WARN if self.may_be_chance(risks) else Verdict.FAIL
        return Verdict.WARN if self.warn is not None and worse > self.warn else Verdict.PASS

    def may_be_chance(self, risks: Risks) -> bool:
        """Whether an unchanged server would show this too often."""
        return otherwise(self.estimate.worse, self.estimate.both, 0.0) > risks.false_alarm

    def wants_more(self, risks: Risks) -> bool:
        """Whether some bound is in doubt, and this figure the vaguer part of the comparison, so that runs help."""
        if self.estimate.own.error < self.estimate.reference.error * WELL_KNOWN:
            return False
        return any(self._in_doubt(cut, risks) for cut in (self.warn, self.fail) if cut is not None)

    def _in_doubt(self, cut: float, risks: Risks) -> bool:
        risk = risks.false_alarm if self.estimate.worse > cut else risks.miss
        return otherwise(self.estimate.worse, self.estimate.both, cut) > risk
