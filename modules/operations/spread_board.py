"""What the hosts of this run have told of a model, so that each can find its part.

pyinfra runs one operation on all hosts before the next begins: what all have told by one, all can read in the next. A
host that failed is left out. Without `--yes` operations are also tried beforehand, when not all may have told.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from pyinfra.context import ctx_state

from modules.facts.weights import WeightsState
from modules.spec.model import Model
from modules.spec.settings import Weights
from modules.spreading.parts import Member

Key = tuple[str, ...]


@dataclass
class Spreading:
    """One model. `commits`: host → the commit that it has; `offer`: what `offer_weights.py` said; `sharing`: hosts."""

    members: dict[str, Member] = field(default_factory=dict)
    commits: dict[str, str | None] = field(default_factory=dict)
    offer: dict[str, Any] | None = None
    sharing: set[str] = field(default_factory=set)

    def tell(self, name: str, state: WeightsState, weights: Weights, *, whole: bool) -> None:
        """What the host said of itself."""
        self.members[name] = Member(name, whole, state.held, state.addresses, state.address, weights.spread)
        self.commits[name] = state.commit

    def settled(self, name: str, commit: str | None) -> None:
        """The host has the model now."""
        self.members[name] = replace(self.members[name], whole=True)
        self.commits[name] = commit

    def taking_part(self) -> list[Member]:
        """The hosts that are still in the run."""
        failed = {host.name for host in ctx_state.get().failed_hosts} if ctx_state.isset() else set()
        return [member for name, member in sorted(self.members.items()) if name not in failed]


_board: dict[Key, Spreading] = {}


def spreading(model: Model) -> Spreading:
    """Of a model, as it is wanted: hosts that want other files of it are on their own."""
    key = (model.repository, model.revision, "include", *model.include, "exclude", *model.exclude)
    return _board.setdefault(key, Spreading())
