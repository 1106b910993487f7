"""The vocabularies that the served models need, so that no engine ever has to download one."""

from __future__ import annotations

from pyinfra.api import deploy

from modules.fleet import HostPlan
from modules.operations.encodings import encodings_mirror, encodings_present


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
