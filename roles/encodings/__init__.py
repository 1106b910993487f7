"""The vocabularies that the served models need, so that no engine ever has to download one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyinfra.api import deploy

from modules.facts.survey import Question
from modules.fleet import HostPlan
from modules.operations.encodings import ENCODINGS_THERE, encodings_mirror, encodings_present


def questions(plan: HostPlan) -> Iterator[Question[Any]]:
    """What this stage asks."""
    if any(service.encodings for service in plan.services):
        yield ENCODINGS_THERE


@deploy("Encodings")
def encodings(plan: HostPlan) -> None:
    """Have every vocabulary of every service on the host."""
    wanted = {name: encoding for service in plan.services for name, encoding in service.encodings.items()}
    if wanted:
        encodings_present(
            name=f"Vocabularies {', '.join(sorted(wanted))}",
            encodings=wanted,
            mirror=encodings_mirror(plan.settings.network),
        )
