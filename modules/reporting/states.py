"""The state that a service is in, by its unit."""

from __future__ import annotations

from modules.facts.service import UnitState
from modules.reporting.report import State


def state_of(unit: UnitState) -> State:
    """A unit that is on its way, or that systemd starts again and again, does not serve yet."""
    if unit.sub == "auto-restart" or unit.active == "failed":
        return "failed"
    if unit.active in {"active", "reloading"}:
        return "running"
    return "unknown" if unit.active == "unknown" else "stopped"
