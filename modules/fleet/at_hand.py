"""Secrets of a fleet that whoever masks a text can know."""

from __future__ import annotations

from contextlib import suppress

from modules.fleet.fleet import Fleet
from modules.fleet.problem import FleetError


def secrets_at_hand(fleet: Fleet) -> list[str]:
    """The values to hide. One that is missing on this controller is no reason not to look."""
    found = []
    for name in fleet.secrets:
        with suppress(FleetError):
            found.append(fleet.secret(name))
    return found
