"""One pass of a deploy over some hosts, and what came of it: no lock, no question, no output of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from modules.converge.outcome import NoResultsError, Outcome, parse_outcome
from modules.converge.process import INTERRUPTED, run_pyinfra
from modules.converge.summary import Errors, completed
from modules.reporting.differences import Difference
from modules.reporting.left_behind import Left


@dataclass(frozen=True)
class Pass:
    """What one run of pyinfra did, or in a dry run would do.

    `finished`: pyinfra ended with results; without them the run was cut or aborted, or no host was left.
    `status`: pyinfra's own, 130 after an interrupt. `errors`: host → what went wrong, in order. `left`: what goes on on
    hosts after an interrupt. `differences`: what a dry run has found, thing by thing.
    """

    outcome: Outcome
    status: int
    dry: bool
    finished: bool
    seconds: float
    errors: Errors = field(default_factory=dict)
    left: Left = field(default_factory=Left)
    differences: Sequence[Difference] = ()

    @property
    def interrupted(self) -> bool:
        """Whether somebody ended it."""
        return self.status == INTERRUPTED

    @property
    def stopped(self) -> list[str]:
        """The hosts that failed, or that a dry run knows to be refused."""
        return sorted({*self.outcome.failed, *self.outcome.refused})

    @property
    def succeeded(self) -> bool:
        """Whether no host failed; hosts that would be refused count for a dry run only where they are asked for."""
        return self.finished and self.status == 0 and not self.outcome.failed


def one_pass(deploy: str, hosts: Sequence[str], *, dry: bool) -> Pass:
    """Run a deploy over these hosts and groups (none: over the whole fleet that TINDERBOX_FLEET names).

    May be called again and again in one process, as for the batches of a rolling upgrade. pyinfra's own output goes to
    the terminal. Host trouble is in what is returned; `KeyboardInterrupt` is, too: as `interrupted`.
    """
    ended = run_pyinfra(deploy, limits=list(hosts), dry=dry)
    try:
        results: Outcome | None = parse_outcome(ended.results, dry=dry)
    except NoResultsError:
        results = None
    outcome = completed(results, ended.errors, dry=dry)
    return Pass(
        outcome, ended.status, dry, results is not None, ended.seconds, ended.errors, ended.left, ended.differences
    )
