"""Turns in a rollout: what waits for the host's own turn, and what is told of a host for that."""

from __future__ import annotations

import os

from pyinfra import host

from modules.facts.releases import HostReleases
from modules.operations.asked import rollout
from modules.rollout.survey import SURVEY_FILE, Surveyed, note


def restart_waits(what: str) -> bool:
    """Whether a restart that ends what serves is left to the host's turn: all hosts are prepared together.

    Where nothing of ours serves there is nothing to wait for. `what`: is to be done then, and why.
    """
    if not os.environ.get(SURVEY_FILE) or rollout():
        return False
    serving = [name for name, one in (host.get_fact(HostReleases) or {}).items() if one.active == "active"]
    if serving:
        note(Surveyed(host.name, "", turn=what))
        host.log(f"{what}; in its turn, since {', '.join(serving)} serves")
    return bool(serving)
