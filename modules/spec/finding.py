"""What check can find on a host."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from modules.spec.base import Strict

SeverityName = Literal["blocked", "slow", "note"]
# `commands`: of the host's shell, as they stand; `fleet file`: a change of it; `by hand`: what no command does.
Cure = Literal["commands", "fleet file", "by hand", "nothing to do"]


class KnownFinding(Strict):
    """A finding by its id.

    `severity`: those that it can have, the usual one first. `meaning`: when it is found. `cost`: what it costs the
    owner. `cure`: of what kind its remedy is. `stage`: the stage that would refuse a host because of it; null: nothing
    is begun on the host (blocked), or nothing is refused. `source`: of the cost and the cure.
    """

    severity: tuple[SeverityName, ...] = Field(min_length=1)
    meaning: str
    cost: str
    cure: Cure
    stage: Literal["runtime", "engine"] | None = None
    source: str
    verified: str = "unverified on hardware"
